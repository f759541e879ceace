package config

import (
	"fmt"
	"strconv"
	"strings"
	"sync"

	"urdma/schema"

	"github.com/xeipuuv/gojsonschema"
)

var compiled = sync.OnceValues(func() (*gojsonschema.Schema, error) {
	return gojsonschema.NewSchema(gojsonschema.NewBytesLoader(schema.JSON))
})

// validate checks a decoded document against the schema. Errors for unknown properties are marked as such.
func validate(d *document) (Errors, error) {
	s, err := compiled()
	if err != nil {
		return nil, fmt.Errorf("the embedded schema of urdma.json does not compile: %w", err)
	}
	result, err := s.Validate(gojsonschema.NewBytesLoader(d.src))
	if err != nil {
		return nil, fmt.Errorf("%s: schema validation: %w", d.file, err)
	}
	var errs Errors
	seen := map[string]bool{}
	for _, r := range result.Errors() {
		e := d.schemaError(r)
		if e == nil {
			continue
		}
		if key := e.Error(); !seen[key] {
			seen[key] = true
			errs = append(errs, e)
		}
	}
	errs.sort()
	return errs, nil
}

// schemaError turns an error of the validator into our words. It returns nil for a repetition.
func (d *document) schemaError(r gojsonschema.ResultError) *Error {
	path := d.pathOf(r.Context())
	switch property, _ := r.Details()["property"].(string); r.Type() {
	case "additional_property_not_allowed":
		return d.unknown(path, property)
	case "required":
		return d.missing(joinPath(path, property))
	case "invalid_property_name":
		return d.badName(path, property)
	case "pattern":
		if n := d.at[path]; n != nil && n.kind == kindObject {
			return nil // invalid_property_name reports it, too
		}
		e := d.wrong(path)
		e.value = true
		switch step := lastStep(path); {
		case step == "vdev":
			e.Hint = suggestVdev(d.at[path].text)
		case strings.HasPrefix(step, "allow[") || strings.HasPrefix(step, "responder_allow["):
			e.Hint = suggestNetwork(d.at[path].text)
		}
		return e
	case "enum", "number_gte", "number_lte", "string_gte", "string_lte":
		e := d.wrong(path)
		e.value = true
		return e
	case "unique":
		e := d.wrong(path)
		e.Found = fmt.Sprintf("%v and %v alike (counted from 0)", r.Details()["i"], r.Details()["j"])
		return e
	}
	return d.wrong(path)
}

func (d *document) unknown(parent, name string) *Error {
	path := joinPath(parent, name)
	return &Error{File: d.file, Path: path, Line: d.nameLine[path], Found: "an unknown property",
		Hint: suggest(parent, name), Unknown: true}
}

func (d *document) missing(path string) *Error {
	p, _ := schema.Lookup(schema.Generic(path))
	return &Error{File: d.file, Path: path, Line: d.line(path), Found: "nothing",
		Allowed: p.Allowed() + " (it must be given)"}
}

func (d *document) badName(parent, name string) *Error {
	path := joinPath(parent, name)
	e := d.wrong(parent)
	e.Path, e.Line, e.Found = path, d.nameLine[path], "the name "+quoteShort(name)
	return e
}

// wrong is an error for the value at path. It takes the allowed values from the nearest container that has a
// description: elements of eal_args have none.
func (d *document) wrong(path string) *Error {
	e := &Error{File: d.file, Path: path, Line: d.line(path), Allowed: "an object"}
	if n, ok := d.at[path]; ok {
		e.Found = n.found()
	}
	if strings.HasPrefix(lastStep(path), "$comment") {
		e.Allowed = "a string or an array of strings"
		return e
	}
	for at := path; at != ""; at = parentPath(at) {
		if p, ok := schema.Lookup(schema.Generic(at)); ok {
			e.Allowed = p.Allowed()
			break
		}
	}
	return e
}

// pathOf converts the validator's context into our path. In the context names and indices look alike; the document
// says which is which.
func (d *document) pathOf(context *gojsonschema.JsonContext) string {
	const separator = "\x00" // occurs in no name: the strict decode refuses NUL
	steps := strings.Split(context.String(separator), separator)[1:]
	path := ""
	for _, step := range steps {
		if n := d.at[path]; n != nil && n.kind == kindArray {
			if i, err := strconv.Atoi(step); err == nil {
				path = indexPath(path, i)
				continue
			}
		}
		path = joinPath(path, step)
	}
	return path
}
