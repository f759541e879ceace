package manualtest

import (
	"fmt"
	"strings"

	"urdma/schema"
)

// Config prints urdma.json(5) from the schema.
func Config(before, after []Section) string {
	p := newPage("urdma.json", "5", "configuration of urdmad")
	p.section("Description")
	for _, s := range before {
		p.paragraph(s.Text)
	}
	p.section("Properties")
	for _, property := range schema.Properties() {
		if property.Depth == 0 || !nested(property.Path) {
			p.property(property)
		}
	}
	for _, parent := range []string{"ports[]", "workers[]", "polling", "limits"} {
		p.subsection("Properties of " + parent)
		for _, property := range schema.Properties() {
			if strings.HasPrefix(property.Path, parent+".") {
				p.property(property)
			}
		}
	}
	for _, s := range after {
		p.section(s.Title)
		if s.Text != "" {
			p.text(s.Text)
		}
		for _, item := range s.Items {
			p.paragraph(item[0])
			p.example(item[1])
		}
	}
	return p.String()
}

func nested(path string) bool { return strings.ContainsAny(path, ".") }

func (p *page) property(s schema.Property) {
	p.item(s.Path[strings.LastIndexByte(s.Path, '.')+1:], strings.Join(s.Types, " or "))
	p.text(s.Description)
	p.lineBreak()
	p.text("Allowed: " + s.Allowed() + ".")
	p.lineBreak()
	p.text(defaultText(s))
	p.lineBreak()
	p.text("Example: " + strings.Join(s.Examples, "; "))
}

func defaultText(s schema.Property) string {
	if s.Computed != "" {
		return "Default: " + s.Computed + "."
	}
	if s.Unit != "" {
		return fmt.Sprintf("Default: %s (%s).", s.Default, s.Unit)
	}
	return "Default: " + s.Default + "."
}
