package gen_test

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/stet-dev/stet/gen/agent/v1"
	_ "github.com/stet-dev/stet/gen/aiserver/v1"
	_ "github.com/stet-dev/stet/gen/anyrun/v1"
	_ "github.com/stet-dev/stet/gen/stet/v1"
)

// row is one field of a message, or one value of an enum, in the table of the
// wire format. A tag that releases used differently has several rows.
type row struct {
	no    protoreflect.FieldNumber
	name  string
	typ   string
	label string
}

// table maps the full name of a message or enum to its rows.
type table map[protoreflect.FullName][]row

// readTable reads the table and the rows that amend it.
func readTable(t *testing.T) table {
	t.Helper()
	tab := make(table)
	for _, file := range []string{"testdata/messages.tsv", "testdata/messages_extra.tsv"} {
		for _, cols := range readTSV(t, file, 7) {
			name := protoreflect.FullName(cols[0])
			if cols[2] == "-" { // a message without fields
				tab[name] = nil
				continue
			}
			tab[name] = append(tab[name], row{fieldNumber(t, cols[2]), cols[3], cols[4], cols[5]})
		}
	}
	return tab
}

// readOmitted reads the fields that our definitions leave out on purpose.
func readOmitted(t *testing.T) map[protoreflect.FullName]map[protoreflect.FieldNumber]bool {
	t.Helper()
	omitted := make(map[protoreflect.FullName]map[protoreflect.FieldNumber]bool)
	for _, cols := range readTSV(t, "testdata/omitted.tsv", 3) {
		name := protoreflect.FullName(cols[0])
		if omitted[name] == nil {
			omitted[name] = make(map[protoreflect.FieldNumber]bool)
		}
		omitted[name][fieldNumber(t, cols[1])] = true
	}
	return omitted
}

func fieldNumber(t *testing.T, s string) protoreflect.FieldNumber {
	t.Helper()
	no, err := strconv.ParseInt(s, 10, 32)
	if err != nil {
		t.Fatalf("parse field number: %v", err)
	}
	return protoreflect.FieldNumber(no)
}

// readTSV returns the lines after the header, split into n columns.
func readTSV(t *testing.T, file string, n int) [][]string {
	t.Helper()
	var out [][]string
	for i, line := range readLines(t, file)[1:] {
		cols := strings.Split(line, "\t")
		if len(cols) != n {
			t.Fatalf("%s:%d: got %d columns, want %d", file, i+2, len(cols), n)
		}
		out = append(out, cols)
	}
	return out
}

func readLines(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines []string
	for sc := bufio.NewScanner(f); ; {
		if !sc.Scan() {
			if err := sc.Err(); err != nil {
				t.Fatalf("read %s: %v", file, err)
			}
			return lines
		}
		lines = append(lines, sc.Text())
	}
}

// wirePackages are the packages that the table describes.
var wirePackages = []protoreflect.FullName{"agent.v1", "aiserver.v1", "anyrun.v1"}

// rangeMessages calls fn for every message of the packages, nested ones
// included. The entries of maps are not messages of their own.
func rangeMessages(packages []protoreflect.FullName, fn func(protoreflect.MessageDescriptor)) {
	var walk func(protoreflect.MessageDescriptors)
	walk = func(ms protoreflect.MessageDescriptors) {
		for i := range ms.Len() {
			if m := ms.Get(i); !m.IsMapEntry() {
				fn(m)
				walk(m.Messages())
			}
		}
	}
	for _, pkg := range packages {
		protoregistry.GlobalFiles.RangeFilesByPackage(pkg, func(f protoreflect.FileDescriptor) bool {
			walk(f.Messages())
			return true
		})
	}
}

// rangeEnums calls fn for every enum of the packages, nested ones included.
func rangeEnums(packages []protoreflect.FullName, fn func(protoreflect.EnumDescriptor)) {
	each := func(es protoreflect.EnumDescriptors) {
		for i := range es.Len() {
			fn(es.Get(i))
		}
	}
	for _, pkg := range packages {
		protoregistry.GlobalFiles.RangeFilesByPackage(pkg, func(f protoreflect.FileDescriptor) bool {
			each(f.Enums())
			return true
		})
	}
	rangeMessages(packages, func(m protoreflect.MessageDescriptor) { each(m.Enums()) })
}
