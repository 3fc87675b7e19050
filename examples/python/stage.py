#!/usr/bin/env python3
"""Stages a bundle with the standard library alone, and prints a Secret from which a pod reads the ticket.

    CLOAKROOM_SERVER=http://127.0.0.1:10000 ./stage.py deps.tgz | kubectl apply -f -

UPLOAD_TOKEN is the upload token, if the server wants one. CLOAKROOM_CA_FILE is the CA of a server with its own
certificate, which is trusted beside the usual ones; the Secret holds it as ca.crt.
"""

import json
import os
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

NAMESPACE = "demo"
# The pods with this label are the owner of the bundle: the server keeps it while one of them exists.
LABEL = "app=demo"


def stage(server, path, ca_file):
    owner = urllib.parse.urlencode({"namespace": NAMESPACE, "label": LABEL})
    trust = ssl.create_default_context()
    if ca_file:
        trust.load_verify_locations(ca_file)
    with open(path, "rb") as bundle:
        request = urllib.request.Request(
            f"{server}/api/v1/resources/?{owner}",
            data=bundle,
            headers={"Content-Length": str(os.path.getsize(path)), "Content-Type": "application/gzip"},
            method="PUT",
        )
        if token := os.environ.get("UPLOAD_TOKEN"):
            # A redirect must not carry the token to another server.
            request.add_unredirected_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, context=trust) as answer:
            return json.load(answer)


def secret(ticket, ca_file):
    data = {"id": ticket["resourceId"], "secret": ticket["resourceSecret"]}
    if ca_file:
        with open(ca_file) as ca:
            data["ca.crt"] = ca.read()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "deps-ticket", "namespace": NAMESPACE},
        "stringData": data,
    }


def reason_of(refusal):
    """What the server says of an upload that it refused: problem+json, unless a proxy answered in its place."""
    try:
        return json.load(refusal)["detail"]
    except (ValueError, KeyError, TypeError):
        return refusal.reason


def refuse(reason, code=2):
    print(f"error: {reason}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        refuse("name the bundle to stage, such as deps.tgz, and nothing else")
    server, ca_file = os.environ.get("CLOAKROOM_SERVER"), os.environ.get("CLOAKROOM_CA_FILE")
    if not server:
        refuse("CLOAKROOM_SERVER is not set: it is the server's address, such as http://127.0.0.1:10000")
    try:
        made = secret(stage(server, sys.argv[1], ca_file), ca_file)
    except urllib.error.HTTPError as refusal:
        refuse(f"the server answered {refusal.code}: {reason_of(refusal)}", code=1)
    except (OSError, ValueError) as failure:
        refuse(getattr(failure, "reason", failure), code=1)
    json.dump(made, sys.stdout)
