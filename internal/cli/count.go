package cli

import (
	"strconv"

	"github.com/spf13/pflag"
)

// countFlag adds a flag for a number of things, which cannot be negative.
func countFlag(flags *pflag.FlagSet, into *int, name, short string, value int, usage string) {
	*into = value
	flags.VarP((*count)(into), name, short, usage)
}

type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }

func (c *count) Type() string { return "uint" }

func (c *count) Set(text string) error {
	n, err := strconv.ParseUint(text, 10, 31)
	if err == nil {
		*c = count(n)
	}
	return err
}
