//! Parts of the OpenAPI document that several operations share: parameters, bodies, refusals.

use std::collections::BTreeMap;

use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::schema::ArrayBuilder;
use utoipa::openapi::{KnownFormat, ObjectBuilder, RefOr, Required, Response, Schema, SchemaFormat, Type};
use utoipa::{IntoParams, IntoResponses, PartialSchema, ToSchema};

use cloakroom_core::protocol::v1::{READ_KEY, query};
use cloakroom_core::protocol::{CONTENT_DIGEST, REPR_DIGEST};

/// The schema of a bundle as a body: plain bytes.
pub(super) struct BundleBody;

impl PartialSchema for BundleBody {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::Binary);
        ObjectBuilder::new().schema_type(Type::String).format(Some(format)).into()
    }
}

impl ToSchema for BundleBody {}

/// The query and the headers of an upload in v1.
pub(super) struct UploadParameters;

impl IntoParams for UploadParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let labels =
            "KEY=VALUE, a label that all owning objects carry; repeatable; at least one label or a name";
        let namespace = optional(query::NAMESPACE, ParameterIn::Query, "the owner's namespace");
        let label = optional(query::LABEL, ParameterIn::Query, labels)
            .schema(Some(ArrayBuilder::new().items(text())));
        let others = [
            (query::NAME, ParameterIn::Query, "the owning object's name"),
            (query::KIND, ParameterIn::Query, "the owner's kind, Kind or Kind.group; default Pod"),
            (query::TTL, ParameterIn::Query, "upper bound on the resource's life, such as 2h"),
            (
                query::UNUSED_TIMEOUT,
                ParameterIn::Query,
                "how long it may stay without being downloaded, such as 6h",
            ),
            (CONTENT_DIGEST, ParameterIn::Header, "sha-256=:BASE64: of the body (RFC 9530); verified"),
            (REPR_DIGEST, ParameterIn::Header, "the same, under its other name"),
        ];
        let others = others.map(|(name, place, description)| optional(name, place, description));
        let all = [namespace.required(Required::True), label].into_iter().chain(others);
        all.map(ParameterBuilder::build).collect()
    }
}

/// The read key of a download.
pub(super) struct ReadKeyParameter;

impl IntoParams for ReadKeyParameter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let description = "a read key, in place of the secret of the ticket";
        vec![optional(READ_KEY, ParameterIn::Query, description).build()]
    }
}

/// The conditional headers of a request for a bundle.
pub(super) struct Conditions;

impl IntoParams for Conditions {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        headers([
            ("if-match", "ETags that the client means: 412 if the bundle has another one"),
            ("if-none-match", "ETags that the client has: 304 if the bundle has one of them"),
        ])
    }
}

/// The headers for a part of a bundle.
pub(super) struct PartOfBundle;

impl IntoParams for PartOfBundle {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        headers([
            ("range", "bytes=FIRST-LAST, bytes=FIRST- or bytes=-SUFFIX"),
            ("if-range", "the ETag that the range is meant for"),
        ])
    }
}

/// The refusals of an upload in v0 and v1. Bodies and headers are added to all errors in one place.
pub(super) struct UploadRefusals;

impl IntoResponses for UploadRefusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let answers = [
            ("401", "unauthorized: no upload token, or the wrong one"),
            ("403", "forbidden: the user may not stage in the owner's namespace"),
            ("408", "too-slow"),
            ("413", "too-large"),
            ("503", "overloaded, authorization-unavailable, not-writable"),
            ("507", "insufficient-storage"),
        ];
        let described = |(status, description): (&str, &str)| {
            (status.to_owned(), ResponseBuilder::new().description(description).into())
        };
        answers.into_iter().map(described).collect()
    }
}

fn headers<const N: usize>(all: [(&str, &str); N]) -> Vec<Parameter> {
    all.map(|(name, description)| optional(name, ParameterIn::Header, description).build()).into()
}

fn optional(name: &str, place: ParameterIn, description: &str) -> ParameterBuilder {
    let parameter = ParameterBuilder::new().name(name).parameter_in(place).required(Required::False);
    parameter.description(Some(description)).schema(Some(text()))
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}
