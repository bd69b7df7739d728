# A bucket for trying a fleet on one machine: the same server that the tests use. Its
# one bucket is the directory /data/stet. For real data take a service that keeps
# copies on several machines.
FROM golang:1.26 AS build
RUN CGO_ENABLED=0 GOBIN=/out go install -trimpath -ldflags '-s -w' \
    github.com/versity/versitygw/cmd/versitygw@v1.8.0
RUN mkdir -p /out/data/objects/stet /out/data/meta

FROM scratch
COPY --from=build /out/versitygw /usr/bin/versitygw
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
VOLUME /data
EXPOSE 7070
ENTRYPOINT ["/usr/bin/versitygw"]
CMD ["--port", ":7070", "--region", "us-east-1", "--keep-alive", "--quiet", "posix", "--sidecar", "/data/meta", "/data/objects"]
