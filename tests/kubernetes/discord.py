# SPDX-License-Identifier: MIT
"""The stand-in for Discord as a pod, for a cluster or for what passes for one: it
signs, and an nginx beside it brings an interaction to a node."""

import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(os.path.dirname(HERE), "standin", "standin.py")
# The node to which an interaction is brought; without it, any.
TO = "Test-Node"
# A host name: the cluster's edge (an ingress, a gateway) brings it, by that name.
BY = "Test-Host"
STANDIN = """
apiVersion: v1
kind: Pod
metadata:
  name: discord
  labels: {app: discord}
spec:
  enableServiceLinks: false
  automountServiceAccountToken: false
  containers:
    - name: standin
      image: %(image)s
      command: [python3, -B, /opt/inline/lib/standin/standin.py, --port, "8081",
                --endpoint, "http://127.0.0.1:9001/interactions",
                --rate-limit, "1000", --deadline, "3", --key-file, /key/key]
      volumeMounts: [{name: key, mountPath: /key}]
    - name: balancer
      image: %(image)s
      command: [sh, -c, 'sed "s/@DNS@/$(sed -n "s/^nameserver //p"
                /etc/resolv.conf | head -n 1)/" /conf/nginx.conf
                >/tmp/nginx.conf; exec nginx -e stderr -c /tmp/nginx.conf']
      volumeMounts: [{name: conf, mountPath: /conf}]
  volumes:
    - name: key
      emptyDir: {}
    - name: conf
      configMap: {name: balancer}
  initContainers:
    - name: key
      image: %(image)s
      command: [sh, -c, "umask 077; cp /secret/key /key/key"]
      volumeMounts: [{name: key, mountPath: /key},
                     {name: secret, mountPath: /secret}]
"""
SERVICE = """
apiVersion: v1
kind: Service
metadata: {name: discord}
spec:
  selector: {app: discord}
  ports: [{port: 9000}]
"""
# Discord's own part of it: what it sends goes to a node, or to the Service.
BALANCER = """daemon off; pid /tmp/pid; error_log stderr;
events { worker_connections 4096; }
http {
    access_log off; resolver @DNS@ ipv6=off valid=1s;
    client_body_temp_path /tmp/body; proxy_temp_path /tmp/proxy;
    fastcgi_temp_path /tmp/fastcgi; uwsgi_temp_path /tmp/uwsgi;
    scgi_temp_path /tmp/scgi;
    proxy_http_version 1.1; proxy_set_header Host $host_name;
    map $http_test_host $host_name {
        default $http_test_host;
        "" inline.example.org;
    }
    map $http_test_node$http_test_host $node {
        default %(edge)s;
        "" %(name)s.%(space)s.svc.cluster.local:80;
        "~^[0-9]+$" %(name)s-$http_test_node.%(name)s-nodes.%(space)s.svc.cluster.local:8080;
    }
    server {
        listen 127.0.0.1:9001;
        location / { proxy_pass http://$node; }
    }
    server {
        listen 9000;
        client_max_body_size 64m;
        proxy_read_timeout 600s;
        location / {
            proxy_set_header Host 127.0.0.1:8081;
            proxy_pass http://127.0.0.1:8081;
        }
    }
}
"""


def make_keys(path):
    """Make its key file; returns the settings that go with it."""
    said = subprocess.run(
        [sys.executable, "-B", PROGRAM, "--key-file", path, "--print-env"],
        capture_output=True, text=True, check=True).stdout
    return dict(line.split("=", 1) for line in said.splitlines())


def by(host):
    """An order for the stand-in: by the cluster's edge, to this name."""
    return {"headers": {BY: host}}


def to(node):
    """An order for the stand-in: to this node, whoever's it is."""
    return {"headers": {TO: str(node)}}
