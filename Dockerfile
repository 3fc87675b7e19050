# The image: one binary, the few files it needs, and nothing that could be run instead of it.

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
# Downloads are kept between builds, the target folder is not: cargo trusts time stamps, and a kept folder can hand out
# the binary of an older checkout.
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    cargo build --release --locked --bin cloakroom

# The same Debian as above: the C library that the binary was linked with is the one it gets.
FROM debian:bookworm-slim AS root
# Naming the packages whose files end up in the image also brings their security fixes, which a base image may lag behind.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates libc6 libgcc-s1
WORKDIR /build
COPY LICENSE ./
COPY manifests/image/ manifests/image/
COPY --from=build /src/target/release/cloakroom ./
# The tests run the same script, and start what it lays out (tests/image/run-in-root).
RUN manifests/image/assemble-root cloakroom /assembled

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
# Buffers from this size on are given back to the kernel at once. Otherwise the C library raises the threshold by itself, and
# scattered buffers keep the memory of a burst (docs/operations.md, Sizing).
ENV MALLOC_MMAP_THRESHOLD_=65536
# SQLite puts temporary files into the working directory where /tmp is read-only.
WORKDIR /var/lib/cloakroom
EXPOSE 10000
ENTRYPOINT ["/usr/bin/cloakroom"]
# A properties file as the only argument replaces this and decides between serve and fetch by its keys.
CMD ["serve"]
