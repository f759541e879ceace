package manualtest

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Section is a part of a manual page that commands don't contain. Text precedes the items; each item is a tag and
// its text.
type Section struct {
	Title, Text string
	Items       [][2]string
}

// Command prints the manual page, in section 1, of a tree of commands.
func Command(root *cobra.Command, after []Section) string {
	p := newPage(root.Name(), "1", root.Short)
	commands := leaves(root)
	p.section("Synopsis")
	for i, c := range commands {
		if i > 0 {
			p.lineBreak()
		}
		rest := strings.TrimPrefix(useLine(c), c.CommandPath())
		fmt.Fprintf(&p.b, "\\fB%s\\fR%s\n", escape(c.CommandPath()), escape(rest))
	}
	p.section("Description")
	p.text(root.Long)
	if root.HasSubCommands() {
		p.section("Commands")
		for _, c := range commands {
			p.command(c)
		}
	} else {
		p.section("Options")
		p.options(root)
	}
	for _, s := range after {
		p.extra(s)
	}
	return p.String()
}

const completion = "completion"

// leaves lists the commands that can be run, in the tree's order.
func leaves(c *cobra.Command) (list []*cobra.Command) {
	if !c.HasAvailableSubCommands() || c.Name() == completion {
		return []*cobra.Command{c}
	}
	for _, child := range c.Commands() {
		if !child.Hidden && child.Name() != "help" {
			list = append(list, leaves(child)...)
		}
	}
	return list
}

// useLine is cobra's usage line. For the command that cobra adds itself, it shows the choice of subcommands.
func useLine(c *cobra.Command) string {
	if c.Name() == completion {
		return c.CommandPath() + " bash|zsh|fish|powershell"
	}
	return c.UseLine()
}

func (p *page) command(c *cobra.Command) {
	p.subsection(strings.TrimPrefix(useLine(c), c.Root().Name()+" "))
	if c.Name() == completion {
		p.text("Print a script that completes this command's words in the shell named; " + c.CommandPath() +
			" SHELL --help tells how to load it.")
		return
	}
	p.text(c.Long)
	p.options(c)
	if c.Example != "" {
		p.example(strings.ReplaceAll("\n"+c.Example, "\n  ", "\n"))
	}
}

// options lists the flags.
func (p *page) options(c *cobra.Command) {
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		tag := "--" + f.Name
		if f.Shorthand != "" {
			tag = "-" + f.Shorthand + ", " + tag
		}
		value, text := pflag.UnquoteUsage(f)
		p.item(tag, value)
		p.text(sentence(text))
	})
}

func (p *page) extra(s Section) {
	p.section(s.Title)
	if s.Text != "" {
		p.text(s.Text)
	}
	for _, item := range s.Items {
		p.item(item[0], "")
		p.text(item[1])
	}
}

func sentence(text string) string {
	first, _, _ := strings.Cut(text, " ")
	if text == "" || strings.Contains(first, ".") { // a file name stays as it is
		return text + "."
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
