//! Makes what a page loads of the compiled playground: `playground-glue WASM DIRECTORY` writes
//! the module, compressed whatever a web server does, and the script that calls it.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use flate2::{Compression, GzBuilder};
use wasm_bindgen_cli_support::Bindgen;

/// The name of the script, and what that of the module begins with.
const NAME: &str = "zonelab";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [module, directory] = &args[..] else {
        eprintln!("playground-glue WASM DIRECTORY");
        return ExitCode::from(2);
    };
    match make(Path::new(module), Path::new(directory)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("playground-glue: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(module: &Path, directory: &Path) -> Result<(), Box<dyn Error>> {
    Bindgen::new()
        .input_path(module)
        .out_name(NAME)
        .typescript(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .web(true)?
        .generate(directory)?;
    let whole = directory.join(format!("{NAME}_bg.wasm"));
    // The same module is the same bytes: no date, no name.
    let mut packed = GzBuilder::new()
        .mtime(0)
        .write(Vec::new(), Compression::best());
    packed.write_all(&fs::read(&whole)?)?;
    fs::write(directory.join(format!("{NAME}.wasm.gz")), packed.finish()?)?;
    fs::remove_file(&whole)?;
    Ok(())
}
