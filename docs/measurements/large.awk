# Draws docs/measurements/large.svg from the output of
#   go test -run XXX -bench 'Large|Features' -benchtime 10x -count 4 .
# time over size on logarithmic axes, the least of several runs.
#   ... | awk -f docs/measurements/large.awk > docs/measurements/large.svg
function see(series, size, time,    key) {
	key = series SUBSEP size
	if (!(key in best)) { sizes[series] = sizes[series] " " size; best[key] = time }
	if (time < best[key]) best[key] = time
}
/^BenchmarkLarge\/[0-9]+x16,eps=0\.01\// {
	split($1, part, /[\/x,]/); kind = ($1 ~ /cold/) ? "a row solved anew, n samples" : "a row whose start is its solution, n samples"
	see(kind, part[2], $3 / 1e6)
}
/^BenchmarkFeatures/ {
	split($1, part, /[\/-]/)
	for (i = 4; i <= NF; i++) if ($i == "µs/row") see("an epoch of " part[2] ", d features", part[3], $(i-1) * part[3] / 1e3)
}
function px(v) { return 70 + 110 * (log(v) / log(10) - 2) }
function py(v) { return 330 - 55 * (log(v) / log(10) + 2) }
END {
	print "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"740\" height=\"380\" font-family=\"sans-serif\" font-size=\"12\">"
	print "<rect width=\"740\" height=\"380\" fill=\"white\"/>"
	for (e = 2; e <= 5; e++) printf "<path d=\"M%d 20V330\" stroke=\"#ddd\"/><text x=\"%d\" y=\"348\" text-anchor=\"middle\">10^%d</text>\n", px(10^e), px(10^e), e
	for (e = -2; e <= 3; e++) printf "<path d=\"M70 %dH400\" stroke=\"#ddd\"/><text x=\"62\" y=\"%d\" text-anchor=\"end\">%g ms</text>\n", py(10^e), py(10^e) + 4, 10^e
	split("#1b6ca8 #5aa9d6 #b5482e #d68a5a", color, " ")
	for (s in sizes) names[++count] = s
	for (i = 1; i <= count; i++) for (j = i + 1; j <= count; j++) if (names[j] < names[i]) { t = names[i]; names[i] = names[j]; names[j] = t }
	for (i = 1; i <= count; i++) {
		k = split(sizes[names[i]], at, " "); line = ""
		for (j = 1; j <= k; j++) {
			line = line (j > 1 ? "L" : "M") px(at[j]) " " py(best[names[i], at[j]])
			printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", px(at[j]), py(best[names[i], at[j]]), color[i]
		}
		printf "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/><text x=\"415\" y=\"%d\" fill=\"%s\">%s</text>\n", line, color[i], 40 + 20 * i, color[i], names[i]
	}
	printf "<path d=\"M%.1f %.1fL%.1f %.1f\" stroke=\"#888\" stroke-dasharray=\"4 4\"/><text x=\"415\" y=\"%d\" fill=\"#888\">time in proportion to size</text>\n", px(100), py(0.02), px(1e5), py(20), 60 + 20 * count
	print "</svg>"
}
