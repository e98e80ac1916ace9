// This program does what needs the tables of functions: the collector and growing stacks, panics, callers.
package main

import "runtime"

type tree struct{ left, right *tree }

func grown(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{grown(depth - 1), grown(depth - 1)}
}

func (t *tree) count() int {
	if t == nil {
		return 0
	}
	return 1 + t.left.count() + t.right.count()
}

func deep(n int, room [64]int) int {
	room[n%64] = n
	if n == 0 {
		_, file, line, ok := runtime.Caller(0)
		pc, _, _, _ := runtime.Caller(0)
		for i := len(file) - 1; i >= 0; i-- {
			if file[i] == '/' {
				file = file[i+1:]
				break
			}
		}
		println(runtime.FuncForPC(pc).Name(), file+":"+digits(line), ok)
		return 0
	}
	return room[n%64] + deep(n-1, room)
}

func digits(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return digits(n/10) + string(rune('0'+n%10))
}

type word struct{ text string }

func (w word) Len() int { return len(w.text) }

func recovered(f func()) (what string) {
	defer func() {
		switch p := recover().(type) {
		case error:
			what = p.Error()
		case string:
			what = p
		}
	}()
	f()
	return "nothing"
}

func main() {
	kept := grown(12)
	for range 20 {
		grown(12)
	}
	runtime.GC()
	println(kept.count())
	done := make(chan int)
	for i := range 5 {
		go func() {
			defer func() { recover(); done <- i }()
			runtime.Gosched()
			println(deep(2000+i, [64]int{}))
			panic("over")
		}()
	}
	sum := 0
	for range 5 {
		runtime.GC()
		sum += <-done
	}
	println(sum, runtime.NumGoroutine())
	var none []int
	println(recovered(func() { println(none[sum]) }))
	var w *word
	println(recovered(func() { println(interface{ Len() int }(w).Len()) }))
	println(recovered(func() { panic("a word") }))
}
