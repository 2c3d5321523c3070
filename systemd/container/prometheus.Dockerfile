# SPDX-License-Identifier: MIT
# Debian's Prometheus, for compose.yaml where no registry has the official one.
ARG BASE=debian:12-slim
FROM $BASE
RUN apt-get -q update && \
	apt-get -q install -y --no-install-recommends prometheus && \
	rm -rf /var/lib/apt/lists/* && \
	install -d -o prometheus -g prometheus /prometheus
USER prometheus
VOLUME /prometheus
ENTRYPOINT ["prometheus"]
