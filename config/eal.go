package config

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// ealArgs flattens eal_args into arguments, in the order of the file. As in the C urdma, a name of one letter gives
// "-l" "0-3" and a longer one "--log-level=7"; an array repeats the option, and true or "" gives the option alone.
func ealArgs(object gjson.Result) []string {
	var args []string
	object.ForEach(func(name, value gjson.Result) bool {
		switch {
		case strings.HasPrefix(name.String(), "$comment"):
		case value.IsArray():
			for _, v := range value.Array() {
				args = append(args, ealOption(name.String(), ealText(v))...)
			}
		case value.Type == gjson.True, value.Type == gjson.String && value.Str == "":
			args = append(args, dashes(name.String()))
		case value.Type == gjson.False:
		default:
			args = append(args, ealOption(name.String(), ealText(value))...)
		}
		return true
	})
	return args
}

func ealOption(name, value string) []string {
	if len(name) == 1 {
		return []string{dashes(name), value}
	}
	return []string{dashes(name) + "=" + value}
}

func dashes(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// ealText formats a number without an exponent, which EAL doesn't parse.
func ealText(v gjson.Result) string {
	if v.Type == gjson.Number && strings.ContainsAny(v.Raw, ".eE") {
		return strconv.FormatFloat(v.Num, 'f', -1, 64)
	}
	if v.Type == gjson.Number {
		return v.Raw
	}
	return v.String()
}
