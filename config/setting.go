package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"urdma/schema"
)

// Setting is one effective value and where it came from.
type Setting struct {
	// Path is the JSON path, such as "ports[0].mtu".
	Path string
	// Value is JSON text.
	Value string
	// Origin is "FILE:LINE", "default", an environment variable ("$…"), or
	// the name of the setting that this one follows.
	Origin string
}

// JSON gives the effective configuration as a urdma.json with every default
// filled in; Check accepts it.
func (c *Config) JSON() []byte {
	root := &branch{}
	for _, s := range c.Settings {
		root.put(steps(s.Path), s.Value)
	}
	var b strings.Builder
	root.write(&b)
	var pretty strings.Builder
	enc := json.NewEncoder(&pretty)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(json.RawMessage(b.String())); err != nil {
		panic(fmt.Sprintf("config: settings gave no JSON: %v", err)) // a fuzz target holds this
	}
	return []byte(pretty.String())
}

// SetResponder overrides Responder, as an option of the command line does; origin
// names it.
func (c *Config) SetResponder(value, origin string) error {
	p, _ := schema.Lookup("responder")
	if !slices.Contains(p.Enum, value) {
		return &Error{File: origin, Path: "responder", Found: strconv.Quote(value), Allowed: p.Allowed()}
	}
	c.Responder = value
	for i := range c.Settings {
		if s := &c.Settings[i]; s.Path == "responder" {
			s.Value, s.Origin = quoteJSON(value), origin
		}
	}
	return nil
}

// quoteJSON writes a string as JSON; strconv.Quote writes Go, whose \x7f is
// none.
func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic(fmt.Sprintf("config: a string gave no JSON: %v", err)) // cannot be
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// branch is an object or an array under construction, in order of arrival.
type branch struct {
	names    []string
	children map[string]*branch
	leaf     string
}

func (b *branch) put(path []string, value string) {
	if len(path) == 0 {
		b.leaf = value
		return
	}
	if b.children == nil {
		b.children = map[string]*branch{}
	}
	child, ok := b.children[path[0]]
	if !ok {
		child = &branch{}
		b.children[path[0]] = child
		b.names = append(b.names, path[0])
	}
	child.put(path[1:], value)
}

func (b *branch) write(out *strings.Builder) {
	if b.children == nil {
		out.WriteString(b.leaf)
		return
	}
	array := strings.HasPrefix(b.names[0], "[")
	out.WriteString(map[bool]string{true: "[", false: "{"}[array])
	for i, name := range b.names {
		if i > 0 {
			out.WriteByte(',')
		}
		if !array {
			fmt.Fprintf(out, "%q:", name)
		}
		b.children[name].write(out)
	}
	out.WriteString(map[bool]string{true: "]", false: "}"}[array])
}

// steps splits "ports[0].mtu" into "ports", "[0]", "mtu".
func steps(path string) []string {
	return strings.Split(strings.ReplaceAll(path, "[", ".["), ".")
}
