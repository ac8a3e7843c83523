# The image of the service. To build from mirrors, set the base image and pip's indexes:
#
#     docker build --build-arg BASE=mirror.example/python:3.13-slim \
#         --build-arg PIP_INDEX_URL=https://mirror.example/simple -t streamer .

ARG BASE=python:3.13-slim

FROM ${BASE} AS build
# pip reads these from the environment. None of them reaches the final stage.
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ARG PIP_TRUSTED_HOST
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_CONSTRAINT=/build/constraints.txt \
    PIP_BUILD_CONSTRAINT=/build/constraints.txt
WORKDIR /build
RUN python -m venv --without-pip /opt/streamer

# This layer is cached until a dependency changes. There is no compiler here, so a
# dependency without a wheel fails early. The tests of numpy alone are 17 MB.
COPY pyproject.toml constraints.txt ./
RUN python -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['project']['dependencies'], sep='\n')" \
        > requirements.txt \
    && python -m pip --python /opt/streamer/bin/python install --only-binary :all: -r requirements.txt \
    && find /opt/streamer -type d -name tests -prune -exec rm -r {} +

COPY LICENSE README.md ./
COPY streamer streamer
RUN python -m pip wheel --no-deps --wheel-dir wheel . \
    && python -m pip --python /opt/streamer/bin/python install --no-deps --prefix /opt/alone wheel/*.whl

FROM ${BASE}
# pip came with the base image; nothing is installed from here on. The directory is the mount
# point for a volume with a key or a journal: a new volume inherits its owner.
RUN rm -rf /usr/local/bin/pip* /usr/local/lib/python3*/site-packages/pip* /usr/local/lib/python3*/ensurepip \
    && install -d -o 10001 -g 10001 /var/lib/streamer
# Two layers: a new release of streamer changes only the small one.
COPY --from=build /opt/streamer /opt/streamer
COPY --from=build /opt/alone /opt/streamer
ENV PATH=/opt/streamer/bin:${PATH} \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    STREAMER_HTTP__HOST=0.0.0.0 \
    STREAMER_METRICS__HOST=0.0.0.0
WORKDIR /var/lib/streamer
USER 10001:10001
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
# Prints the reason; 'docker inspect' shows it.
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import http.client, os, sys; asked = http.client.HTTPConnection('127.0.0.1', int(os.getenv('STREAMER_METRICS__PORT', '9090')), timeout=4); asked.request('GET', '/healthz'); answer = asked.getresponse(); print(answer.read().decode()); sys.exit(answer.status != 200)"]
ENTRYPOINT ["streamer"]
CMD ["run"]

ARG BASE
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="streamer" \
      org.opencontainers.image.description="What many of your users are seeing right now, with a proven bound on what it reveals about any single one" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${BASE}"
