FROM python:3.13-slim AS build
ENV UV_PYTHON_DOWNLOADS=never UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy
WORKDIR /app
RUN python -m venv .venv && .venv/bin/pip install -q --disable-pip-version-check 'uv>=0.5,<1'
COPY pyproject.toml uv.lock ./
RUN .venv/bin/uv sync --frozen --all-extras --no-dev --no-install-project
COPY . .
RUN .venv/bin/python manage.py collectstatic --noinput

FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data par && install -d -o par -g par -m 700 /data
ENV PYTHONUNBUFFERED=1 PAR_DATA_DIR=/data PORT=8000
WORKDIR /app
COPY --from=build /app /app
USER par
VOLUME /data
EXPOSE 8000
# README.md, "In production", has the variables that are needed and the command that prepares the database.
# Stopping takes up to 45 seconds, since running turns may end.
STOPSIGNAL SIGTERM
ENTRYPOINT [".venv/bin/python", "manage.py"]
CMD ["serve", "--host", "0.0.0.0"]
