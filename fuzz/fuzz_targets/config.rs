//! Random text as a configuration: it is rejected with a one-line error, or it passes validation.
#![no_main]

use libfuzzer_sys::fuzz_target;
use midflight_control::Config;
use std::path::Path;

fuzz_target!(|text: &str| match <Config>::parse(text, Path::new("fuzzed.toml")) {
    Ok(config) => assert_eq!(config.validate(), Ok(())),
    Err(error) => {
        let line = error.to_string();
        assert!(!line.is_empty() && !line.contains('\n'), "{line:?}");
    }
});
