//! The page: the files of `web/`, compiled in.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Only our own files, and no script or style within HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

struct File {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

macro_rules! files {
    ($($name:literal: $kind:expr),* $(,)?) => {
        &[$(File { name: $name, kind: $kind, bytes: include_bytes!(concat!("../../../../web/", $name)) }),*]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

const FILES: &[File] = files! {
    "index.html": "text/html; charset=utf-8",
    "style.css": STYLE,
    "main.js": SCRIPT,
    "cache.js": SCRIPT,
    "charts.js": SCRIPT,
    "controller.js": SCRIPT,
    "dom.js": SCRIPT,
    "parts.js": SCRIPT,
    "replica.js": SCRIPT,
    "store.js": SCRIPT,
    "stream.js": SCRIPT,
    "tasks.js": SCRIPT,
    "theme.js": SCRIPT,
    "units.js": SCRIPT,
    "icon.svg": "image/svg+xml",
    "uPlot.iife.min.js": SCRIPT,
    "uPlot.min.css": STYLE,
    "uPlot.LICENSE": "text/plain; charset=utf-8",
};

pub(super) const PAGE: &str = "index.html";

pub(super) fn file(name: &str, asked: &HeaderMap) -> Response {
    let Some(file) = FILES.iter().find(|file| file.name == name) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    let tag = tag(file.bytes);
    // A browser may send several tags, or mark them as weak.
    let known = asked.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok());
    let is_known = known.is_some_and(|tags| tags.split(',').any(|one| one.trim().trim_start_matches("W/") == tag));
    let mut response = if is_known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, file.kind)], file.bytes).into_response()
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::try_from(tag) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// Equal for equal bytes, within one build.
fn tag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}
