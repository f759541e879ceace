package schema

import (
	"fmt"
	"strings"
	"sync"

	"github.com/tidwall/gjson"
)

// Property is one setting of urdma.json as the schema describes it.
type Property struct {
	// Path names the setting without array indices: "ports[].mtu", "polling.spin_us".
	Path string
	// Types are the JSON types allowed, in the schema's order.
	Types       []string
	Description string
	// Unit is the unit of a number; "" for other types.
	Unit string
	// Default is the JSON text of the default, or "null" if it is not a constant; Computed then describes it.
	Default  string
	Computed string
	// Examples are JSON texts.
	Examples []string
	// Enum lists the only allowed values, if there is such a list.
	Enum     []string
	Required bool
	// Depth is 0 for a top-level setting.
	Depth int

	allowed string
	node    gjson.Result
}

// Properties returns every setting in the schema's order, a container before its contents. The slice is shared and
// must not be changed.
func Properties() []Property { return parsed().list }

// Lookup finds a setting by a path without indices ("ports[].mtu"). The path
// "ports[]" is the element of an array.
func Lookup(path string) (Property, bool) {
	p, ok := parsed().byPath[path]
	return p, ok
}

// Generic removes the indices from a path: "ports[3].mtu" gives "ports[].mtu".
func Generic(path string) string {
	var b strings.Builder
	inside := false
	for _, c := range path {
		if c == ']' {
			inside = false
		}
		if !inside {
			b.WriteRune(c)
		}
		if c == '[' {
			inside = true
		}
	}
	return b.String()
}

// IsNumber reports whether the setting is a number, which then has a unit.
func (p Property) IsNumber() bool {
	return len(p.Types) == 1 && (p.Types[0] == "integer" || p.Types[0] == "number")
}

// Allowed describes the allowed values in words.
func (p Property) Allowed() string {
	if p.allowed != "" {
		return p.allowed
	}
	switch {
	case len(p.Enum) > 0:
		return "one of " + strings.Join(p.Enum, ", ")
	case p.IsNumber():
		return p.allowedNumber()
	case p.is("array"):
		return p.allowedArray()
	case p.is("object"):
		return "an object"
	}
	return "a " + strings.Join(p.Types, " or a ")
}

func (p Property) is(kind string) bool { return len(p.Types) == 1 && p.Types[0] == kind }

func (p Property) allowedNumber() string {
	text := fmt.Sprintf("an integer from %s to %s", p.node.Get("minimum").Raw, p.node.Get("maximum").Raw)
	if p.Unit != "" {
		text += " (" + p.Unit + ")"
	}
	return text
}

func (p Property) allowedArray() string {
	text := fmt.Sprintf("an array of %d to %s elements", p.node.Get("minItems").Int(), p.node.Get("maxItems").Raw)
	if p.node.Get("uniqueItems").Bool() {
		text += ", no two alike"
	}
	return text
}

type index struct {
	list   []Property
	byPath map[string]Property
}

var parsed = sync.OnceValue(func() *index {
	idx := &index{byPath: map[string]Property{}}
	root := gjson.ParseBytes(JSON)
	idx.byPath[""] = Property{Types: []string{"object"}, node: root}
	idx.walk("", root, 0)
	return idx
})

// walk adds the settings of one object of the schema.
func (idx *index) walk(path string, object gjson.Result, depth int) {
	required := map[string]bool{}
	for _, r := range object.Get("required").Array() {
		required[r.String()] = true
	}
	object.Get("properties").ForEach(func(key, node gjson.Result) bool {
		p := newProperty(join(path, key.String()), node)
		p.Required, p.Depth = required[key.String()], depth
		idx.list = append(idx.list, p)
		idx.byPath[p.Path] = p
		idx.walk(p.Path, node, depth+1)
		if items := node.Get("items"); items.Exists() {
			element := newProperty(p.Path+"[]", items)
			idx.byPath[element.Path] = element
			idx.walk(element.Path, items, depth+1)
		}
		return true
	})
}

func newProperty(path string, node gjson.Result) Property {
	p := Property{
		Path:        path,
		Description: node.Get("description").String(),
		Unit:        node.Get("unit").String(),
		Default:     node.Get("default").Raw,
		Computed:    node.Get("computed").String(),
		allowed:     node.Get("allowed").String(),
		node:        node,
	}
	for _, t := range node.Get("type").Array() {
		p.Types = append(p.Types, t.String())
	}
	for _, e := range node.Get("examples").Array() {
		p.Examples = append(p.Examples, e.Raw)
	}
	for _, e := range node.Get("enum").Array() {
		p.Enum = append(p.Enum, e.String())
	}
	return p
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
