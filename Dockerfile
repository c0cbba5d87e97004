# Dockerfile -- httpdnsd as a container image: docker build -t httpdnsd .
#
# The two images may be replaced (--build-arg BUILD_IMAGE=… RUNTIME_IMAGE=…); both must be of one Debian release, since
# the program is linked against its libraries.

ARG BUILD_IMAGE=swift:6.3-bookworm
ARG RUNTIME_IMAGE=debian:bookworm-slim

FROM ${BUILD_IMAGE} AS build
WORKDIR /source
# By themselves, so that a change of the sources does not install packages again.
COPY Scripts/install-packages Scripts/
RUN Scripts/install-packages build image
COPY . .
RUN Scripts/build httpdnsd \
 && setcap cap_net_bind_service=+ep .build/bin/httpdnsd

FROM ${RUNTIME_IMAGE}
RUN apt-get update -q \
 && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
      ca-certificates libcurl4 libevent-2.1-7 libsimdjson14 libssl3 libstdc++6 \
 && rm -rf /var/lib/apt/lists/*
# The capability for port 53 is the file's: one that a container is given would be root's alone.
COPY --from=build /source/.build/bin/httpdnsd /usr/local/bin/httpdnsd
COPY Config/httpdnsd.toml /etc/httpdnsd/httpdnsd.toml
# Of no user that the base image knows, and not root.
USER 65532:65532
EXPOSE 53/udp 53/tcp
STOPSIGNAL SIGTERM
ENTRYPOINT ["/usr/local/bin/httpdnsd"]
CMD ["run"]
