# Dockerfile -- httpdnsd as a container image: docker build -t httpdnsd .
#
# The two images may be replaced (--build-arg BUILD_IMAGE=… RUNTIME_IMAGE=…); both must be of one Debian release, since
# the program is linked against its libraries. What is made is neither: the program, the libraries that it needs, and
# certificates; no shell.

ARG BUILD_IMAGE=swift:6.3-bookworm
ARG RUNTIME_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
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
      ca-certificates libcurl4 libevent-2.1-7 libevent-openssl-2.1-7 libpsl5 libsimdjson14 libssl3 libstdc++6
COPY --from=build /source/.build/bin/httpdnsd /usr/local/bin/httpdnsd
COPY Scripts/image-root /usr/local/sbin/
RUN image-root /image /usr/local/bin/httpdnsd

FROM scratch
LABEL org.opencontainers.image.title="httpdnsd" \
      org.opencontainers.image.description="A nameserver that resolves through HTTPDNS" \
      org.opencontainers.image.version="0.1.0" \
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
