package devstack

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// cached returns folder name below root, which fill makes on first use. It is
// filled under another name and renamed when complete: whoever finds it finds
// all of it, and of two processes that fill it at once one discards its copy.
func cached(root, name string, fill func(dir string) error) (string, error) {
	final := filepath.Join(root, name)
	if _, err := os.Stat(final); err == nil {
		return final, nil
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	partial, err := os.MkdirTemp(root, name+".partial-")
	if err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(partial) }() // gone already after the rename
	if err := fill(partial); err != nil {
		return "", err
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	if err := os.Rename(partial, final); err != nil && !isDir(final) {
		return "", fmt.Errorf("cache folder: %w", err)
	}
	return final, nil
}

// cacheRoot is the projector's folder in the user's cache directory.
func cacheRoot() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder, set XDG_CACHE_HOME: %w", err)
	}
	return filepath.Join(base, "projector"), nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// isProgram reports whether path is a file that somebody may execute.
func isProgram(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != fs.FileMode(0)
}
