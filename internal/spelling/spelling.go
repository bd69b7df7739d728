// Package spelling finds the word that a mistyped one was meant to be.
//
//	spelling.Nearest("limt", []string{"cursor", "limit"}) // "limit"
package spelling

// most is how many letters a mistyped word may differ in.
const most = 2

// Nearest returns the candidate that a mistyped word is closest to, the first one of
// several, or "" if none is close.
func Nearest(word string, candidates []string) string {
	best, distance := "", most+1
	for _, c := range candidates {
		if max(len(c)-len(word), len(word)-len(c)) > most {
			continue
		}
		if d := Edits(word, c); d < distance && d < len(c)/2+1 {
			best, distance = c, d
		}
	}
	return best
}

// Edits returns how many letters have to be inserted, removed, replaced or swapped with
// their neighbour to turn one word into another.
func Edits(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = last[j]
			if a[i] != b[j] {
				row[j+1] = 1 + min(last[j], last[j+1], row[j])
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
