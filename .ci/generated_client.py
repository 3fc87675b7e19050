"""Uses the generated client as a user does: stages, fetches, compares, deletes, and reads errors as typed objects, in
both protocols."""

import hashlib
import io
import os
import sys
from pathlib import Path

from cloakroom_client import AuthenticatedClient, Client
from cloakroom_client.api.admin import get_status, list_resources
from cloakroom_client.api.operations import get_health
from cloakroom_client.api.v0 import download_bundle_v0, ping_v0, stage_bundle_v0
from cloakroom_client.api.v1 import (
    download_bundle,
    download_named_bundle,
    end_read_keys,
    get_metadata,
    get_server_info,
    head_bundle,
    make_read_key,
    put_named_bundle,
    release_bundle,
    stage_bundle,
)
from cloakroom_client.models import (
    Code,
    KeyedUrl,
    Metadata,
    Problem,
    ReadKeyTerms,
    ResourcePage,
    ServerStatus,
    StagedResourcesOwner,
    StagedResourcesOwnerOwnerLabels,
    SubmittedResourceIdAndSecret,
    Ticket,
    UploadForm,
)
from cloakroom_client.types import File

OWNER = {"namespace": "demo", "label": ["app=demo", "team=etl"]}


def is_answer(answer, status, kind):
    """Checks status and type; a failure shows the answer without its bytes."""
    assert answer.status_code == status and isinstance(answer.parsed, kind), (answer.status_code, type(answer.parsed))


def is_problem(answer, status, code):
    """Every error is an object with the same fields, and its code is one of those in the document."""
    is_answer(answer, status, Problem)
    assert (answer.parsed.status, answer.parsed.code) == (status, code), answer.parsed
    assert answer.parsed.detail, answer.parsed


def with_secret(url, secret, prefix="Bearer"):
    return AuthenticatedClient(base_url=url, token=secret, prefix=prefix)


def v1(url, bundle):
    anybody = Client(base_url=url)
    assert get_server_info.sync(client=anybody).version
    staged = stage_bundle.sync_detailed(client=anybody, body=File(payload=io.BytesIO(bundle)), **OWNER)
    is_answer(staged, 201, Ticket)
    ticket = staged.parsed
    assert ticket.size_bytes == len(bundle), ticket
    assert ticket.sha256 == hashlib.sha256(bundle).hexdigest(), ticket

    holder = with_secret(url, ticket.resource_secret)
    fetched = download_bundle.sync_detailed(ticket.resource_id, client=holder)
    is_answer(fetched, 200, File)
    assert fetched.parsed.payload.read() == bundle
    part = download_bundle.sync_detailed(ticket.resource_id, client=holder, range_="bytes=10-19")
    is_answer(part, 206, File)
    assert part.parsed.payload.read() == bundle[10:20]
    assert head_bundle.sync_detailed(ticket.resource_id, client=holder).status_code == 200
    metadata = get_metadata.sync(ticket.resource_id, client=holder)
    assert isinstance(metadata, Metadata) and metadata.owner.labels["team"] == "etl", metadata

    keyed = make_read_key.sync(ticket.resource_id, client=holder, body=ReadKeyTerms(ttl="1h"))
    assert isinstance(keyed, KeyedUrl), type(keyed)
    key = keyed.url.split("?token=")[1]
    named = download_named_bundle.sync_detailed(ticket.resource_id, "deps.tar.gz", client=anybody, token=key)
    is_answer(named, 200, File)
    assert named.parsed.payload.read() == bundle
    assert end_read_keys.sync_detailed(ticket.resource_id, client=holder).status_code == 204
    is_problem(download_bundle.sync_detailed(ticket.resource_id, client=anybody, token=key), 404, Code.NOT_FOUND)

    wrong = with_secret(url, "not-the-secret-of-this-resource")
    is_problem(download_bundle.sync_detailed(ticket.resource_id, client=wrong), 404, Code.NOT_FOUND)
    is_problem(
        stage_bundle.sync_detailed(client=anybody, body=File(payload=io.BytesIO(b"x")), namespace="demo"),
        400,
        Code.INVALID_OWNER,
    )
    released = release_bundle.sync_detailed(ticket.resource_id, client=holder)
    assert released.status_code == 204, released.status_code
    gone = download_bundle.sync_detailed(ticket.resource_id, client=holder)
    is_problem(gone, 410, Code.GONE)
    assert gone.parsed.deletion_reason == "released" and gone.parsed.deleted_at is not None, gone.parsed


def named(url, bundle):
    """The name is part of the path."""
    staged = put_named_bundle.sync("deps.tgz", client=Client(base_url=url), body=File(payload=io.BytesIO(bundle)), **OWNER)
    metadata = get_metadata.sync(staged.resource_id, client=with_secret(url, staged.resource_secret))
    assert metadata.file_name == "deps.tgz", metadata


def v0(url, bundle):
    anybody = Client(base_url=url)
    assert ping_v0.sync(client=anybody) == "pong"
    owner = StagedResourcesOwner(
        owner_namespace="demo",
        owner_labels=StagedResourcesOwnerOwnerLabels.from_dict({"app": "demo"}),
        owner_type="Pod",
    )
    form = UploadForm(resources=File(payload=io.BytesIO(bundle), file_name="deps.tgz"), resources_owner=owner)
    staged = stage_bundle_v0.sync_detailed(client=anybody, body=form)
    is_answer(staged, 200, SubmittedResourceIdAndSecret)
    ticket = staged.parsed
    for prefix in ["Bearer", ""]:
        holder = with_secret(url, ticket.resource_secret, prefix)
        assert download_bundle_v0.sync(ticket.resource_id, client=holder).payload.read() == bundle
    wrong = with_secret(url, "not-the-secret-of-this-resource", "")
    is_problem(download_bundle_v0.sync_detailed(ticket.resource_id, client=wrong), 401, Code.UNAUTHORIZED)
    return ticket.resource_id


def operations(url, token, staged):
    anybody = Client(base_url=url)
    assert get_health.sync(client=anybody) == "ok\n"
    admin = with_secret(url, token)
    page = list_resources.sync(client=admin, namespace="demo")
    assert isinstance(page, ResourcePage) and staged in [row.resource_id for row in page.resources], page
    assert isinstance(get_status.sync(client=admin), ServerStatus)
    is_problem(get_status.sync_detailed(client=with_secret(url, "no-admin")), 401, Code.UNAUTHORIZED)


def main():
    url, token = sys.argv[1], Path(sys.argv[2]).read_text().strip()
    bundle = os.urandom(3_000_000)
    v1(url, bundle)
    named(url, bundle)
    operations(url, token, v0(url, bundle))
    print("the generated client staged, fetched, compared and deleted in v1, and staged and fetched in v0")


main()
