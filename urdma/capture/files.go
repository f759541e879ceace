package capture

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"urdma/verbs/abi"
)

// Output says where to write frames.
type Output struct {
	Path string // "-": standard output
	// FileBytes, if not 0, is the approximate size at which the next file begins. The files are numbered between
	// Path's name and its suffix.
	FileBytes int64
	// Files, if not 0, is how many files are kept; the oldest are removed.
	Files int
}

// files is the series of files of a capture; without FileBytes it is one file.
type files struct {
	output  Output
	section *Section
	current *file
	names   []string // files that still exist
	number  int
}

// NewFiles begins pcapng files. Events become comments of the packet after them.
func NewFiles(o Output, s Section) (Sink, error) {
	f := &files{output: o, section: &s}
	return f, f.next()
}

// next begins the next file and removes the oldest if there are too many.
func (f *files) next() (err error) {
	if f.output.Path == "-" {
		f.current, err = newFile(stdout{}, f.section)
		return err
	}
	f.number++
	name := f.name()
	file, err := create(name)
	if err != nil {
		return err
	}
	if f.current, err = newFile(file, f.section); err != nil {
		file.Close()
		return err
	}
	f.names = append(f.names, name)
	if f.output.Files > 0 && len(f.names) > f.output.Files {
		if err := os.Remove(f.names[0]); err != nil && !os.IsNotExist(err) {
			return err
		}
		f.names = f.names[1:]
	}
	return nil
}

// create makes a file that only its owner can read, even if it existed with other permissions: packets contain
// other people's data.
func create(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() {
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *files) name() string {
	if f.output.FileBytes == 0 {
		return f.output.Path
	}
	suffix := filepath.Ext(f.output.Path)
	return fmt.Sprintf("%s-%05d%s", strings.TrimSuffix(f.output.Path, suffix), f.number, suffix)
}

func (f *files) Write(r *abi.CaptureRecord, frame, note []byte, lost uint64) error {
	if f.output.FileBytes > 0 && f.current.bytes >= f.output.FileBytes {
		if err := f.Close(0); err != nil {
			return err
		}
		if err := f.next(); err != nil {
			return err
		}
	}
	return f.current.write(r, frame, note, lost)
}

func (f *files) Flush() error { return f.current.flush() }

func (f *files) Close(late uint64) error {
	if f.current == nil {
		return nil
	}
	current := f.current
	f.current = nil
	return current.close(late)
}

// stdout is standard output, which stays open.
type stdout struct{}

func (stdout) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdout) Close() error                { return nil }

var _ io.WriteCloser = stdout{}
