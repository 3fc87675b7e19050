# The image: one static binary, the few files it needs, and nothing that could be run instead of it. packaging/release makes
# the same image without a container engine, and reads its settings below.

FROM rust:1.95-slim-bookworm AS root
# Naming ca-certificates also brings its newest version, which a base image may lag behind.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates gcc libc6-dev python3 python3-venv
WORKDIR /cloakroom
COPY . .
ARG REVISION=unknown
ENV CLOAKROOM_RELEASE_CACHE=/cache
# Downloads are kept between builds, the target folder is not: cargo trusts time stamps, and a kept folder can hand out
# the binary of an older checkout.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    mkdir /tree \
    && cp "$(CLOAKROOM_REVISION=$REVISION packaging/binary "$(uname -m)")" /tree/cloakroom \
    && packaging/linked "$(uname -m)" /tree
# The tests run the same script, and start what it lays out (tests/image/run-in-root).
RUN manifests/image/assemble-root /tree/cloakroom /assembled /tree

FROM scratch
ARG VERSION=dev
ARG REVISION=unknown
LABEL org.opencontainers.image.title="cloakroom" \
    org.opencontainers.image.description="A resource staging server for Kubernetes, with its clients, in one binary" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.version="${VERSION}" \
    org.opencontainers.image.revision="${REVISION}"
# Between stages COPY keeps owners and modes, so the data folder belongs to its user.
COPY --from=root /assembled/ /
# By number: a pod's runAsNonRoot cannot judge a name.
USER 65532:65532
# No VOLUME: it would give every container an anonymous one, which goes with the container and takes acknowledged bundles
# with it. What is to last is mounted here on purpose.
ENV CLOAKROOM_DATA_DIR=/var/lib/cloakroom
# SQLite puts temporary files into the working directory where /tmp is read-only.
WORKDIR /var/lib/cloakroom
EXPOSE 10000
ENTRYPOINT ["/usr/bin/cloakroom"]
# A properties file as the only argument replaces this and decides between serve and fetch by its keys.
CMD ["serve"]
