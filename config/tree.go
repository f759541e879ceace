package config

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

// node is one value of the strict decode and its place in the file.
type node struct {
	kind kind
	line int
	// raw is the value as written in the file.
	raw string
	// text is the decoded string of a kindString.
	text    string
	members []member // of a kindObject, in file order, names unique
	items   []*node  // of a kindArray
}

type member struct {
	name  string
	line  int // line of the name, which may differ from the value's line
	value *node
}

// document is a decoded file. Values are found by their JSON path.
type document struct {
	file string
	src  []byte
	root *node
	at   map[string]*node
	// nameLine is the line of a member's name, by the member's path.
	nameLine map[string]int
}

func newDocument(file string, src []byte, root *node) *document {
	d := &document{file: file, src: src, root: root, at: map[string]*node{}, nameLine: map[string]int{}}
	d.enter("", root)
	return d
}

func (d *document) enter(path string, n *node) {
	d.at[path] = n
	for _, m := range n.members {
		child := joinPath(path, m.name)
		d.nameLine[child] = m.line
		d.enter(child, m.value)
	}
	for i, item := range n.items {
		d.enter(indexPath(path, i), item)
	}
}

// line is the line of the value at path, or of the object that lacks it.
func (d *document) line(path string) int {
	for {
		if n, ok := d.at[path]; ok {
			return n.line
		}
		if path == "" {
			return 1
		}
		path = parentPath(path)
	}
}

// joinPath appends a member's name to a path. A name that isn't plain is quoted, so that different places have
// different paths and no control byte reaches a message.
func joinPath(path, name string) string {
	switch {
	case !plainName(name):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func indexPath(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

func plainName(name string) bool {
	for _, c := range name {
		ok := c == '_' || c == '-' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !ok {
			return false
		}
	}
	return name != ""
}

// parentPath removes the last step of a path made of plain names and indices.
func parentPath(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '.' || path[i] == '[' {
			return path[:i]
		}
	}
	return ""
}

const foundLimit = 60 // runes of a value that an error shows

// found describes a value for an error, without control bytes.
func (n *node) found() string {
	switch n.kind {
	case kindObject:
		return "an object"
	case kindArray:
		return fmt.Sprintf("an array of %d", len(n.items))
	case kindString:
		return quoteShort(n.text)
	}
	return shorten(n.raw)
}

func quoteShort(s string) string {
	if short := shorten(s); short != s {
		return strconv.Quote(short[:len(short)-len("…")]) + "…"
	}
	return strconv.Quote(s)
}

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= foundLimit {
		return s
	}
	return string([]rune(s)[:foundLimit]) + "…"
}
