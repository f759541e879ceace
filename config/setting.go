package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"urdma/schema"

	"github.com/tidwall/sjson"
)

// Setting is one effective value and its origin.
type Setting struct {
	// Path is the JSON path, such as "ports[0].mtu".
	Path string
	// Value is JSON text.
	Value string
	// Origin is "FILE:LINE", "default", an environment variable ("$…"), or the name of the setting that determines
	// this one.
	Origin string
}

// JSON returns the effective configuration as a urdma.json with every default filled in; Check accepts it.
func (c *Config) JSON() []byte {
	text := []byte("{}")
	for _, s := range c.Settings {
		var err error
		if text, err = sjson.SetRawBytes(text, gjsonPath(s.Path), []byte(s.Value)); err != nil {
			// a fuzz target checks that this cannot happen
			panic(fmt.Sprintf("config: %s of %s: %v", s.Path, s.Value, err))
		}
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		panic(fmt.Sprintf("config: settings gave no JSON: %v", err)) // the same
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// SetResponder overrides Responder, for an option of the command line; origin names the option.
func (c *Config) SetResponder(value, origin string) error {
	p, _ := schema.Lookup("responder")
	if !slices.Contains(p.Enum, value) {
		return &Error{File: origin, Path: "responder", Found: strconv.Quote(value), Allowed: p.Allowed()}
	}
	c.Responder = value
	c.override("responder", value, origin)
	return nil
}

// SetSocket overrides Socket, and with it the default of SysfsDir.
func (c *Config) SetSocket(path, origin string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("%s: %w", origin, err)
	}
	if len(path) > maxSocketPath {
		return &Error{File: origin, Path: "socket", Found: strconv.Quote(path),
			Allowed: fmt.Sprintf("a path of at most %d bytes", maxSocketPath)}
	}
	if c.SysfsDir == sysfsBeside(c.Socket) {
		c.SysfsDir = sysfsBeside(path)
		c.override("sysfs_dir", c.SysfsDir, origin)
	}
	c.Socket = path
	c.override("socket", path, origin)
	return nil
}

// sysfsBeside is the default of SysfsDir: next to the socket.
func sysfsBeside(socket string) string { return strings.TrimSuffix(socket, ".sock") + ".sysfs" }

func (c *Config) override(path, value, origin string) {
	for i := range c.Settings {
		if s := &c.Settings[i]; s.Path == path {
			s.Value, s.Origin = quoteJSON(value), origin
		}
	}
}

// quoteJSON writes a string as JSON. strconv.Quote writes Go syntax, whose \x7f is not JSON.
func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(fmt.Sprintf("config: a string gave no JSON: %v", err)) // cannot happen
	}
	return strings.TrimSuffix(b.String(), "\n")
}
