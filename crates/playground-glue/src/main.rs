//! Makes what a page loads of the compiled playground: `playground-glue WASM DIRECTORY` writes
//! the module and the script that calls it.

use std::path::Path;
use std::process::ExitCode;

use wasm_bindgen_cli_support::Bindgen;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [wasm, directory] = &args[..] else {
        eprintln!("playground-glue WASM DIRECTORY");
        return ExitCode::from(2);
    };
    let mut bindgen = Bindgen::new();
    let bindgen = bindgen
        .input_path(wasm)
        .out_name("zonelab")
        .typescript(false);
    let made = bindgen.web(true).map(|bindgen| {
        bindgen
            .remove_name_section(true)
            .remove_producers_section(true)
    });
    match made.and_then(|bindgen| bindgen.generate(Path::new(directory))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("playground-glue: {error:#}");
            ExitCode::FAILURE
        }
    }
}
