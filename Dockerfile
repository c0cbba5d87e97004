# Dockerfile -- httpdnsd as a container image: docker build -t httpdnsd .
#
# Swift 6.3 has images of Debian 12 and none of Debian 13, so that its toolchain is taken out of one; another comes with
# --build-arg SWIFT_IMAGE=…. The other two may be replaced too, by images of Debian 13. The result is based on none of
# them: it has the program, the libraries that it needs, and certificates, but no shell.

ARG SWIFT_IMAGE=swift:6.3-bookworm
ARG BUILD_IMAGE=debian:trixie
ARG RUNTIME_IMAGE=debian:trixie-slim

FROM ${SWIFT_IMAGE} AS swift
COPY Scripts/image-toolchain /
RUN /image-toolchain /toolchain

FROM ${BUILD_IMAGE} AS build
RUN apt-get update -q \
 && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
      binutils ca-certificates git libc6-dev libcurl4t64 libgcc-14-dev libncurses6 libsqlite3-0 libstdc++-14-dev libuuid1 \
      libxml2 tzdata zlib1g-dev
COPY --from=swift /toolchain /opt/toolchain
ENV PATH=/opt/toolchain/usr/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /source
# By themselves, so that a change of the sources does not install packages again.
COPY Scripts/install-packages Scripts/
RUN Scripts/install-packages build image
COPY . .
# Permitted and not effective: the program takes it into effect by itself, and starts without it too where it is withheld.
RUN Scripts/build httpdnsd \
 && setcap cap_net_bind_service=+p .build/bin/httpdnsd

FROM ${RUNTIME_IMAGE} AS runtime
RUN apt-get update -q \
 && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
      ca-certificates libcurl4t64 libevent-2.1-7t64 libmnl0 libnftnl11 libnghttp2-14 \
      libpsl5t64 libsimdjson25 libssl3t64 libstdc++6 publicsuffix
COPY --from=build /source/.build/bin/httpdnsd /usr/local/bin/httpdnsd
COPY Scripts/image-root /usr/local/sbin/
RUN image-root /image /usr/local/bin/httpdnsd

FROM scratch
LABEL org.opencontainers.image.title="httpdnsd" \
      org.opencontainers.image.description="A nameserver that resolves through HTTPDNS" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=runtime /image /
COPY --from=runtime --chown=65532:65532 /image/var/lib/httpdnsd /var/lib/httpdnsd
COPY --from=runtime --chown=65532:65532 /image/run/httpdnsd /run/httpdnsd
# By itself: the capability for port 53 is the file's, since one that a container is given would be root's alone.
COPY --from=build /source/.build/bin/httpdnsd /usr/local/bin/httpdnsd
COPY Config/container.toml /etc/httpdnsd/httpdnsd.toml
# Everybody on the container's networks. A blank variable leaves these keys to a file.
ENV PATH=/usr/local/bin \
    HTTPDNSD_LISTEN=0.0.0.0:53,[::]:53 \
    HTTPDNSD_ALLOW=connected
USER 65532:65532
EXPOSE 53/udp 53/tcp
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 \
  CMD ["/usr/local/bin/httpdnsd", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/httpdnsd"]
CMD ["run"]
