//! The formats of metrics: OpenMetrics, and by default the classic text of Prometheus, which every scraper reads.

use axum::http::{HeaderMap, header};

const OPEN_METRICS: &str = "application/openmetrics-text";
const CLASSIC: &str = "text/plain";

/// Versions of OpenMetrics that this one satisfies, as scrapers name them.
const VERSIONS: [&str; 2] = ["1.0.0", "0.0.1"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exposition {
    Classic,
    OpenMetrics,
}

impl Exposition {
    /// The format that a request prefers by its `Accept`; classic by default.
    pub(super) fn preferred_by(headers: &HeaderMap) -> Self {
        let lists = headers.get_all(header::ACCEPT).iter().filter_map(|list| list.to_str().ok());
        let (mut classic, mut open) = (0.0, 0.0);
        for (kind, quality) in lists.flat_map(|list| list.split(',')).filter_map(quality) {
            let best = if kind == Self::OpenMetrics { &mut open } else { &mut classic };
            *best = quality.max(*best);
        }
        if open > classic { Self::OpenMetrics } else { Self::Classic }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Converts OpenMetrics text to this format.
    pub(super) fn convert(self, open_metrics: String) -> String {
        match self {
            Self::Classic => classic(&open_metrics),
            Self::OpenMetrics => open_metrics,
        }
    }
}

/// The format and quality (`q`, default 1) of an element of `Accept`: `TYPE; PARAMETER=VALUE; …`. `None` for other types and versions.
fn quality(element: &str) -> Option<(Exposition, f32)> {
    let mut parts = element.split(';').map(str::trim);
    let kind = match parts.next()?.to_ascii_lowercase().as_str() {
        OPEN_METRICS => Exposition::OpenMetrics,
        CLASSIC => Exposition::Classic,
        _ => return None,
    };
    let mut quality = 1.0;
    for (name, value) in parts.filter_map(|parameter| parameter.split_once('=')) {
        match name {
            "q" => quality = value.parse().ok()?,
            "version" if kind == Exposition::OpenMetrics && !VERSIONS.contains(&value) => return None,
            _ => {}
        }
    }
    Some((kind, quality))
}

/// Converts OpenMetrics text. In the classic format a family is named like its samples, and has no unit, information or end.
fn classic(open_metrics: &str) -> String {
    let mut text = String::with_capacity(open_metrics.len() + open_metrics.len() / 16);
    // The help of the family whose type follows.
    let mut help = "";
    for line in open_metrics.lines() {
        let mut words = line.splitn(4, ' ');
        match [words.next(), words.next(), words.next(), words.next()] {
            [Some("#"), Some("HELP"), Some(_), words] => help = words.unwrap_or_default(),
            [Some("#"), Some("TYPE"), Some(name), Some(kind)] => {
                let (ending, kind) = match kind {
                    "counter" => ("_total", kind),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    _ => ("", kind),
                };
                text += &format!("# HELP {name}{ending} {help}\n# TYPE {name}{ending} {kind}\n");
            }
            [Some("#"), ..] => {}
            _ => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn asked(lists: &[&'static str]) -> Exposition {
        Exposition::preferred_by(&lists.iter().map(|list| (header::ACCEPT, HeaderValue::from_static(list))).collect())
    }

    #[test]
    fn open_metrics_come_where_they_are_preferred() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,\
                          text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(asked(&[prometheus]), Exposition::OpenMetrics);
        assert_eq!(asked(&["application/openmetrics-text"]), Exposition::OpenMetrics);
        assert_eq!(asked(&["text/plain;q=0.1", "Application/OpenMetrics-Text; q=0.2"]), Exposition::OpenMetrics);
    }

    #[test]
    fn the_classic_form_comes_to_all_others() {
        for list in
            ["*/*", "text/html", "text/plain, application/openmetrics-text;q=0.9", "application/openmetrics-text;q=0"]
        {
            assert_eq!(asked(&[list]), Exposition::Classic, "{list}");
        }
        for list in ["application/openmetrics-text;version=2.0.0", "application/openmetrics-text;q=much", ";;,=,"] {
            assert_eq!(asked(&[list]), Exposition::Classic, "{list}");
        }
        assert_eq!(asked(&[]), Exposition::Classic);
    }

    #[test]
    fn families_are_named_like_their_samples_in_the_classic_form() {
        let open = "# HELP a Tasks.\n# TYPE a counter\n# UNIT a tasks\na_total{x=\"# TYPE\"} 1\n# HELP b About it.\n\
                    # TYPE b info\nb_info 1\n# HELP c C.\n# TYPE c histogram\nc_count 2\n# HELP d\n# TYPE d unknown\nd 1\n# EOF\n";
        let classic = "# HELP a_total Tasks.\n# TYPE a_total counter\na_total{x=\"# TYPE\"} 1\n# HELP b_info About it.\n\
                       # TYPE b_info gauge\nb_info 1\n# HELP c C.\n# TYPE c histogram\nc_count 2\n# HELP d \n# TYPE d untyped\nd 1\n";
        assert_eq!(Exposition::Classic.convert(open.into()), classic);
        assert_eq!(Exposition::OpenMetrics.convert(open.into()), open);
    }
}
