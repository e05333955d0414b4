# srdma in Kubernetes: controller, nodes and drivers are one image. From the sources:
#
#   cargo xtask package
#   docker build -t srdma:0.1.0 -f dist/container/Kubernetes.Dockerfile target/package
FROM debian:bookworm-slim

# libibverbs1 is for RDMA devices (--device); systemd-standalone-sysusers creates the package's users.
COPY srdma.deb /tmp/srdma.deb
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        systemd-standalone-sysusers ibverbs-providers libibverbs1 /tmp/srdma.deb \
    && rm -rf /var/lib/apt/lists/* /tmp/srdma.deb

# The manifests have the user of each part: controllers are no root.
ENTRYPOINT ["/usr/bin/srdma"]
