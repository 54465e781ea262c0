//! Precomputes the Git blob ids of the built-in protocols' files, so that a process need not read
//! known blobs from a repository.

use std::error::Error;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use sha1::{Digest, Sha1};
use sha2::Sha256;

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let mut shipped: Vec<(Vec<u8>, String)> = Vec::new();
    for protocol in fs::read_dir(root.join("templates"))? {
        let protocol = protocol?.file_name();
        if !root
            .join("templates")
            .join(&protocol)
            .join("protocol.json")
            .exists()
        {
            continue;
        }
        for folder in ["templates", "schemas"] {
            let folder = PathBuf::from(folder).join(&protocol);
            println!("cargo:rerun-if-changed={}", root.join(&folder).display());
            for file in fs::read_dir(root.join(&folder))? {
                let path = folder.join(file?.file_name());
                let bytes = fs::read(root.join(&path))?;
                let blob = [format!("blob {}\0", bytes.len()).as_bytes(), &bytes].concat();
                let path = path.to_str().ok_or("a name")?.replace('\\', "/");
                shipped.push((Sha1::digest(&blob).to_vec(), path.clone()));
                shipped.push((Sha256::digest(&blob).to_vec(), path));
            }
        }
    }
    shipped.sort();
    shipped.dedup_by(|(one, _), (other, _)| one == other);
    let mut code = String::from("static SHIPPED: &[(&[u8], &str)] = &[\n");
    for (id, path) in shipped {
        writeln!(code, "    (&{id:?}, {path:?}),")?;
    }
    code += "];\n";
    fs::write(Path::new(&env::var("OUT_DIR")?).join("shipped.rs"), code)?;
    Ok(())
}
