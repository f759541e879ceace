package schema

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/xeipuuv/gojsonschema"
)

func TestSchemaIsValidDraft7(t *testing.T) {
	loader := gojsonschema.NewSchemaLoader()
	loader.Validate = true // against the meta-schema
	loader.AutoDetect = true
	if _, err := loader.Compile(gojsonschema.NewBytesLoader(JSON)); err != nil {
		t.Fatal(err)
	}
}

func TestEveryPropertyIsExplained(t *testing.T) {
	if len(Properties()) < 40 {
		t.Fatalf("found %d properties: the walk misses some", len(Properties()))
	}
	for _, p := range Properties() {
		if p.Description == "" || !strings.HasSuffix(p.Description, ".") {
			t.Errorf("%s: description %q is no sentence", p.Path, p.Description)
		}
		if p.Default == "" {
			t.Errorf("%s: no default", p.Path)
		}
		if p.Default == "null" && p.Computed == "" {
			t.Errorf("%s: the default is null and nothing says what that means", p.Path)
		}
		if p.Default != "null" && p.Computed != "" {
			t.Errorf("%s: both a default and a computed one", p.Path)
		}
		if len(p.Examples) == 0 {
			t.Errorf("%s: no example", p.Path)
		}
		if p.IsNumber() && p.Unit == "" {
			t.Errorf("%s: a number without a unit", p.Path)
		}
		if p.IsNumber() && (!p.node.Get("minimum").Exists() || !p.node.Get("maximum").Exists()) {
			t.Errorf("%s: a number without both bounds", p.Path)
		}
		if p.node.Get("pattern").Exists() && p.allowed == "" {
			t.Errorf("%s: a pattern without words for it", p.Path)
		}
		if p.Allowed() == "" {
			t.Errorf("%s: nothing says what is allowed", p.Path)
		}
	}
}

// A default or an example that the schema refuses would mislead.
func TestDefaultsAndExamplesObeyTheirSchema(t *testing.T) {
	for _, p := range Properties() {
		values := append([]string{}, p.Examples...)
		if p.Default != "null" {
			values = append(values, p.Default)
		}
		compiled, err := gojsonschema.NewSchema(gojsonschema.NewStringLoader(p.node.Raw))
		if err != nil {
			t.Fatalf("%s: %v", p.Path, err)
		}
		for _, v := range values {
			result, err := compiled.Validate(gojsonschema.NewStringLoader(v))
			if err != nil {
				t.Fatalf("%s: %s: %v", p.Path, v, err)
			}
			for _, e := range result.Errors() {
				t.Errorf("%s: %s: %s", p.Path, v, e)
			}
		}
	}
}

// Each object refuses unknown properties and lets $comment keys through.
func TestEveryObjectIsClosed(t *testing.T) {
	var walk func(path string, v any)
	walk = func(path string, v any) {
		m, ok := v.(map[string]any)
		if !ok {
			return
		}
		if _, ok := m["properties"]; ok && m["type"] == "object" {
			if m["additionalProperties"] != false {
				t.Errorf("%s: additionalProperties is not false", path)
			}
			if _, ok := m["patternProperties"].(map[string]any)[`^\$comment`]; !ok {
				t.Errorf("%s: $comment is not let through", path)
			}
		}
		for k, child := range m {
			walk(path+"/"+k, child)
		}
	}
	var root any
	if err := json.Unmarshal(JSON, &root); err != nil {
		t.Fatal(err)
	}
	walk("", root)
}

func TestAllowedInWords(t *testing.T) {
	for path, want := range map[string]string{
		"transport":    "one of iwarp, ib, roce",
		"ports[].mtu":  "an integer from 576 to 9600 (bytes)",
		"ports":        "an array of 1 to 32 elements, no two alike",
		"polling":      "an object",
		"ports[]":      "an object",
		"$schema":      "a string",
		"socket":       "an absolute path of at most 107 bytes (unix(7))",
		"polling.nice": "an integer from -20 to 19 (nice value)",
	} {
		p, ok := Lookup(path)
		if !ok {
			t.Errorf("%s: not found", path)
		} else if got := p.Allowed(); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

// TestAllowedHasBounds: the text of Allowed contains every bound.
func TestAllowedHasBounds(t *testing.T) {
	bounds := regexp.MustCompile(`^an (array of \d+ to \d+ elements|integer from -?\d+ to \d+)`)
	for path, p := range parsed().byPath {
		got := p.Allowed()
		if counted := p.allowed == "" && len(p.Enum) == 0 && (p.is("array") || p.is("integer")); counted &&
			!bounds.MatchString(got) || strings.Contains(got, "  ") || got == "" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

func TestGeneric(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "socket": "socket", "ports[0].mtu": "ports[].mtu", "ports[12]": "ports[]", "a[1][2].b": "a[][].b",
	} {
		if got := Generic(in); got != want {
			t.Errorf("Generic(%q) = %q, want %q", in, got, want)
		}
	}
}
