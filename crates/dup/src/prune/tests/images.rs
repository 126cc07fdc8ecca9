//! Images of file systems, mounted through a loop device.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use bc_testkit::TestTree;

/// A mounted image, unmounted on drop.
pub(crate) struct Mount {
    pub(crate) at: PathBuf,
    _base: TestTree,
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

fn run_tool(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(args)
        .output()
        .map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        Err(format!("{program}: {}", text.trim()))
    }
}

/// Mounts a new file system of this kind; or the reason why not.
pub(crate) fn mount(kind: &str) -> Result<Mount, String> {
    mount_with(kind, "loop")
}

/// Mounts such an image with options of `mount(8)`, `loop` among them.
pub(crate) fn mount_with(kind: &str, options: &str) -> Result<Mount, String> {
    if !bc_testkit::is_root() {
        return Err("needs root to mount".to_owned());
    }
    let base = TestTree::new();
    let image = base.scratch("image");
    let at = base.path().to_owned();
    let file = fs::File::create(&image).map_err(|error| error.to_string())?;
    file.set_len(400 << 20).map_err(|error| error.to_string())?;
    let image = image.to_str().ok_or("odd temporary directory")?;
    run_tool(&format!("mkfs.{kind}"), &["-q", image])?;
    let target = at.to_str().ok_or("odd temporary directory")?;
    run_tool("mount", &["-o", options, image, target])?;
    Ok(Mount { at, _base: base })
}
