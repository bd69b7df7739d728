package main

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// Measures of a plot, in pixels.
const (
	width, height            = 640, 360
	left, right, top, bottom = 70, 180, 30, 50
)

var colours = []string{"#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed"}

// scale maps values to pixels by their logarithms.
type scale struct {
	low, high float64 // powers of ten
	from, to  float64
}

func (s scale) at(v float64) float64 {
	if s.high == s.low {
		return s.from
	}
	return s.from + (math.Log10(v)-s.low)/(s.high-s.low)*(s.to-s.from)
}

// plot draws the curves of a group on logarithmic scales, with a dotted line for what
// grows as the sizes do.
func plot(g *group) []byte {
	var out bytes.Buffer
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range g.points {
		for _, c := range p.costs {
			low, high = min(low, math.Log10(max(c, 1e-4))), max(high, math.Log10(max(c, 1e-4)))
		}
	}
	first, last := float64(g.points[0].size), float64(g.points[len(g.points)-1].size)
	x := scale{math.Floor(math.Log10(first)), math.Ceil(math.Log10(last)), left, width - right}
	y := scale{math.Floor(low), math.Ceil(high + 0.001), height - bottom, top}
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#fff"/><text x="%d" y="18" font-size="14">%s</text>`+"\n", width, height, left, html.EscapeString(g.title))
	for p := x.low; p <= x.high; p++ {
		at := x.at(math.Pow(10, p))
		fmt.Fprintf(&out, `<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			at, top, height-bottom, at, height-bottom+18, thousands(int(math.Pow(10, p)+0.5)))
	}
	for p := y.low; p <= y.high; p++ {
		at := y.at(math.Pow(10, p))
		fmt.Fprintf(&out, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%g ms</text>`+"\n",
			left, at, width-right, left-6, at+4, math.Pow(10, p))
	}
	fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n", (left+width-right)/2, height-8, html.EscapeString(g.axis))
	// A linear cost, from the lower left corner to where it leaves the plot.
	rise := min(x.high-x.low, y.high-y.low)
	fmt.Fprintf(&out, `<path d="M%d %dL%.1f %.1f" stroke="#999" stroke-dasharray="2 4"/><text x="%.1f" y="%.1f" fill="#999">linear</text>`+"\n",
		left, height-bottom, x.at(math.Pow(10, x.low+rise)), y.at(math.Pow(10, y.low+rise)), x.at(math.Pow(10, x.low+rise/2))+6, y.at(math.Pow(10, y.low+rise/2))+12)
	for i, name := range g.curves {
		colour := colours[i%len(colours)]
		var path bytes.Buffer
		for n, p := range g.points {
			step := "L"
			if n == 0 {
				step = "M"
			}
			px, py := x.at(float64(p.size)), y.at(max(p.costs[i], 1e-4))
			fmt.Fprintf(&path, "%s%.1f %.1f", step, px, py)
			fmt.Fprintf(&out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", px, py, colour)
		}
		fmt.Fprintf(&out, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", path.String(), colour)
		fmt.Fprintf(&out, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", width-right+10, top+14+18*i, colour, html.EscapeString(name))
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}
