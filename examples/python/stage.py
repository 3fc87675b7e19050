#!/usr/bin/env python3
"""Stages a bundle with the standard library alone, and prints a Secret from which a pod reads the ticket.

    CLOAKROOM_SERVER=http://127.0.0.1:10000 ./stage.py deps.tgz | kubectl apply -f -

UPLOAD_TOKEN is the upload token, if the server wants one. SSL_CERT_FILE is the CA of a server with its own certificate;
the Secret holds it as ca.crt.
"""

import json
import os
import sys
import urllib.parse
import urllib.request

NAMESPACE = "demo"
# The pods with this label are the owner of the bundle: the server keeps it while one of them exists.
LABEL = "app=demo"


def stage(path):
    owner = urllib.parse.urlencode({"namespace": NAMESPACE, "label": LABEL})
    with open(path, "rb") as bundle:
        request = urllib.request.Request(
            f"{os.environ['CLOAKROOM_SERVER']}/api/v1/resources/?{owner}",
            data=bundle,
            headers={"Content-Length": str(os.path.getsize(path)), "Content-Type": "application/gzip"},
            method="PUT",
        )
        if token := os.environ.get("UPLOAD_TOKEN"):
            # A redirect must not carry the token to another server.
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)


def secret(ticket):
    data = {"id": ticket["resourceId"], "secret": ticket["resourceSecret"]}
    if ca_file := os.environ.get("SSL_CERT_FILE"):
        with open(ca_file) as ca:
            data["ca.crt"] = ca.read()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "deps-ticket", "namespace": NAMESPACE},
        "stringData": data,
    }


if __name__ == "__main__":
    json.dump(secret(stage(sys.argv[1])), sys.stdout)
