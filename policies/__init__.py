"""Queue policies, one small file each; `registry` lists them by name. None reads files or clocks."""
