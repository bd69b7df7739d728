package agents

import "strings"

// nearest returns the name that a person probably meant, or "".
func nearest(name string) string {
	name = plain(name)
	if name == "" {
		return ""
	}
	best, least := "", 3
	for _, n := range Importable() {
		p := plain(n)
		if strings.HasPrefix(p, name) && len(name) > 1 || strings.HasPrefix(name, p) && len(p) > 2 {
			return n
		}
		if d := distance(name, p); d < least && d < len(p)-1 {
			best, least = n, d
		}
	}
	return best
}

// plain is a name without what people write differently.
func plain(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// distance counts the letters that must be changed, added or removed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
