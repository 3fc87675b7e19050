#!/bin/sh
# Stages a file with curl alone, shows what the server knows about it, fetches it again and deletes it.
#
#     CLOAKROOM_SERVER=http://127.0.0.1:10000 ./bundle.sh deps.tgz
#
# UPLOAD_TOKEN is the upload token, if the server wants one.
set -eu
umask 077

bundle=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# curl reads secrets from a file: an argument would be visible in the list of processes.
bearer() { printf 'Authorization: Bearer %s\n' "$1" >"$folder/$2"; }
field() { sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p" "$folder/ticket.json"; }

: >"$folder/upload"
if [ -n "${UPLOAD_TOKEN:-}" ]; then bearer "$UPLOAD_TOKEN" upload; fi

# The pods with this label in this namespace are the owner of the bundle.
curl -fsS -H "@$folder/upload" -T "$bundle" -o "$folder/ticket.json" \
    "$CLOAKROOM_SERVER/api/v1/resources/?namespace=demo&label=app=demo"
url=$(field url)
bearer "$(field resourceSecret)" ticket
echo "staged $(field resourceId)"

curl -fsS -H "@$folder/ticket" "$url/metadata"
echo

curl -fsS -H "@$folder/ticket" -o "$folder/fetched" "$url"
cmp "$bundle" "$folder/fetched"
echo "fetched the same bytes"

curl -fsS -H "@$folder/ticket" -X DELETE "$url"
echo "deleted"
