//! Parts of the internals' pages that tests write and check.

use std::sync::{Mutex, PoisonError};

/// Checks that `PAGE`, of `docs/internals`, has this text between `<!-- NAME -->` and `<!-- end of NAME -->`. With `UPDATE_DOCS=1` it
/// writes the text; then read the difference.
pub(crate) fn page_shows(page: &str, name: &str, text: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let path = format!("{}/../../docs/internals/{page}", env!("CARGO_MANIFEST_DIR"));
    let mut page = std::fs::read_to_string(&path).expect("the page");
    let (from, to) = (format!("<!-- {name} -->\n"), format!("<!-- end of {name} -->"));
    let start = page.find(&from).unwrap_or_else(|| panic!("no place for {name}")) + from.len();
    let end = start + page[start..].find(&to).unwrap_or_else(|| panic!("no end of {name}"));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        page.replace_range(start..end, text);
        std::fs::write(path, &page).expect("writable");
    } else {
        assert_eq!(&page[start..end], text, "{name}: UPDATE_DOCS=1 writes it anew");
    }
}
