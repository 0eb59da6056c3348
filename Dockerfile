# The Slack bot as an image: wheels are checked against requirements.lock, then only what runs is installed.
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock ./
# Every wheel is verified by its hash here; the next step may take from this folder only.
RUN python -m pip wheel --no-cache-dir --disable-pip-version-check --require-hashes \
      --requirement requirements.lock --wheel-dir /wheels
COPY pyproject.toml README.md LICENSE ./
COPY bot ./bot
COPY storage ./storage
RUN python -m venv /opt/opsthread \
 && /opt/opsthread/bin/python -m pip install --no-cache-dir --disable-pip-version-check \
      --no-index --find-links /wheels .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/opsthread --create-home opsthread
COPY --from=build /opt/opsthread /opt/opsthread
ENV PATH=/opt/opsthread/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    OPSTHREAD_DATA_DIR=/var/lib/opsthread \
    OPSTHREAD_LOG_FORMAT=json \
    OPSTHREAD_HTTP_PORT=8080
USER opsthread
WORKDIR /var/lib/opsthread
# Without DATABASE_URL the embedded Postgres keeps its data in this volume; it runs as this user.
VOLUME /var/lib/opsthread
# Tokens, keys and hosts.yml come in at run time (environment, mounted files); none is in the image.
STOPSIGNAL SIGTERM
EXPOSE 8080
HEALTHCHECK --start-period=30s --timeout=5s CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['OPSTHREAD_HTTP_PORT'] + '/healthz', timeout=4)"]
ENTRYPOINT ["opsthread"]
CMD ["serve"]
