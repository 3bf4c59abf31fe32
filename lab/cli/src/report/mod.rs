//! Self-contained pages: they load no script, font or picture.

pub(crate) mod chart;
pub(crate) mod figures;
mod plots;
pub(crate) mod rows;
mod ticks;

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = concat!(include_str!("style.css"), include_str!("dark.css"));

fn document(title: &str, content: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (content) } }
        }
    };
    markup.into_string()
}

/// Tiles: the name of a number, the number, and an explanation.
fn tiled(tiles: &[(&str, String, String)]) -> Markup {
    html! {
        div.tiles {
            @for (name, value, detail) in tiles {
                div.tile { div.name { (name) } div.value { (value) } div.detail { (detail) } }
            }
        }
    }
}
