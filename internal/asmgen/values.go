package main

// Expressions of a body that is compiled (compile.go), and the registers that they take.

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"math"
	"slices"
)

// common is what is the same in all of the loop: parameters that are numbers, fields and constants.
type common struct {
	places  map[string]Operand // where it lies
	hoisted map[string]Vec     // what has a register
	wanted  []string           // what would have one, each time
	liked   []string           // constants that need none
}

// registers are those of the body.
type registers struct {
	taken   []bool       // as far as they were in use
	owned   map[Vec]bool // those that the expression at hand alone reads
	waiting map[Vec]int  // those of operands that wait for the other one
}

// take returns one that is free.
func (s *registers) take() Vec {
	r := slices.Index(s.taken, false)
	if r < 0 {
		r = len(s.taken)
		s.taken = append(s.taken, false)
	}
	s.taken[r], s.owned[Vec(r)] = true, true
	return Vec(r)
}

// free gives an operand back that nothing else will read.
func (s *registers) free(o Operand) {
	if r, is := o.(Vec); is && s.owned[r] && s.waiting[r] == 0 && int(r) < len(s.taken) {
		s.taken[r] = false
	}
}

// to returns a register for a result: one of the operands, or another.
func (s *registers) to(operands ...Operand) Vec {
	for _, o := range operands {
		if r, is := o.(Vec); is && s.owned[r] && s.waiting[r] == 0 {
			return r
		}
	}
	return s.take()
}

// fill brings into a register what is the same in all of the loop.
func (c *compiler) fill(r Vec, name string) {
	switch place := c.all.places[name].(type) {
	case Const:
		c.f.load(r, c.f.w(name, place.word))
	default:
		c.f.broadcast(r, place)
	}
}

// same returns the register of what is the same in all of the loop.
func (c *compiler) same(name string) Vec {
	if r, is := c.all.hoisted[name]; is {
		return r
	}
	c.all.wanted = append(c.all.wanted, name)
	r := c.regs.take()
	c.fill(r, name)
	return r
}

// register returns the register of an operand.
func (c *compiler) register(o Operand) Vec {
	switch o := o.(type) {
	case Const:
		return c.same(o.name)
	case Mem:
		r := c.regs.take()
		c.f.load(r, o)
		return r
	case Repeat:
		r := c.regs.take()
		c.f.broadcast(r, o.Mem)
		return r
	}
	return o.(Vec)
}

// operations are those of arithmetic.
var operations = map[token.Token]Op{token.ADD: opAdd, token.SUB: opSub, token.MUL: opMul, token.QUO: opDiv}

// value writes an expression and returns its operand, a Vec or a Const; where there are loops, a Mem or a
// Repeat, too.
func (c *compiler) value(e ast.Expr) Operand {
	if v := source.info.Types[e].Value; v != nil {
		number, _ := constant.Float64Val(constant.ToFloat(v))
		name := fmt.Sprintf("x%016x", bits(number))
		if id, is := e.(*ast.Ident); is {
			name = id.Name
		}
		k := c.constant(name, number)
		if r, is := c.all.hoisted[name]; is {
			return r
		}
		c.all.liked = append(c.all.liked, name)
		return k
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		return c.value(e.X)
	case *ast.UnaryExpr:
		return c.unary(c.f.negate, e.X)
	case *ast.BinaryExpr:
		x, y := c.both(e.X, e.Y)
		if _, is := x.(Vec); !is && (e.Op == token.ADD || e.Op == token.MUL) {
			x, y = y, x
		}
		return c.binary(operations[e.Op], c.register(x), y)
	case *ast.CallExpr:
		return c.call(text(e.Fun), e.Args)
	case *ast.IndexExpr:
		if c.walk.nested {
			return c.number(e)
		}
	}
	return c.read(e)
}

// constant is the operand of a number.
func (c *compiler) constant(name string, v float64) Const {
	k := c.f.c(name, v)
	c.all.places[name] = k
	return k
}

// both writes two expressions.
func (c *compiler) both(x, y ast.Expr) (a, b Operand) {
	a = c.value(x)
	if m, is := a.(Mem); is && m.Base == apartR { // y may be at such an address, too
		a = c.register(a)
	}
	r, is := a.(Vec)
	if is {
		c.regs.waiting[r]++
	}
	b = c.value(y)
	if is {
		c.regs.waiting[r]--
	}
	return a, b
}

func (c *compiler) binary(op Op, a Vec, b Operand) Vec {
	to := c.regs.to(a, b)
	c.f.vecOp(op, to, a, b)
	if a != to {
		c.regs.free(a)
	}
	if b != Operand(to) {
		c.regs.free(b)
	}
	return to
}

func (c *compiler) unary(op func(dst, a Vec), x ast.Expr) Vec {
	a := c.register(c.value(x))
	to := c.regs.to(a)
	op(to, a)
	if a != to {
		c.regs.free(a)
	}
	return to
}

// call writes a function of a number, or of two.
func (c *compiler) call(name string, args []ast.Expr) Operand {
	switch name {
	case "float64":
		return c.value(args[0])
	case "max", "min", "atLeast":
		op := opMax
		if name == "min" {
			op = opMin
		}
		x, y := c.both(args[0], args[1])
		if c.bound(args[1]) {
			x, y = Operand(c.register(y)), x // the bound goes first
		}
		return c.binary(op, c.register(x), y)
	case "math.Inf":
		return c.constant("neginf", math.Inf(-1))
	case "math.Abs":
		return c.unary(c.f.magnitude, args[0])
	case "math.Sqrt":
		return c.unary(c.f.sqrt, args[0])
	case "elem.Exp":
		return c.function(c.f.expAll, args[0])
	case "elem.Log":
		log := c.f.logAll
		if bound, is := args[0].(*ast.CallExpr); is && text(bound.Fun) == "max" {
			log = c.f.logAbove
		}
		return c.function(log, args[0])
	case "expNear":
		return c.function(c.f.exp, args[0])
	case "elem.RoughLog2":
		a := c.register(c.value(args[0]))
		var r [5]Vec
		for i := range r {
			r[i] = c.regs.take()
		}
		c.f.roughLog(a, r[0], r[1], r[2], r[3], r[4])
		for _, t := range r {
			c.regs.free(t)
		}
		return a
	case "elem.Logistic":
		e := c.function(c.f.expAll, &ast.UnaryExpr{X: args[0]})
		one := c.register(c.constant("one", 1))
		e = c.binary(opAdd, e, one)
		return c.binary(opDiv, one, e)
	}
	c.f.fail("cannot compile %s", name)
	return nil
}

// bound tells of what is a number, not 0, or the same in all of the loop.
func (c *compiler) bound(e ast.Expr) bool {
	if v := source.info.Types[e].Value; v != nil {
		return constant.Sign(v) != 0
	}
	return c.all.places[text(e)] != nil
}

// function writes one of a number, which has scratch.
func (c *compiler) function(g func(out, x, a, b, c, d, e Vec), of ast.Expr) Vec {
	x := c.register(c.value(of))
	var r [6]Vec
	for i := range r {
		r[i] = c.regs.take()
	}
	g(r[0], x, r[1], r[2], r[3], r[4], r[5])
	for _, t := range r[1:] {
		c.regs.free(t)
	}
	c.regs.free(x)
	return r[0]
}

// read returns the register of a variable, of a number of a slice, or of a parameter.
func (c *compiler) read(e ast.Expr) Vec {
	name := text(e)
	if s, is := e.(*ast.SelectorExpr); is {
		c.all.places[name] = c.f.field(c.bases[text(s.X)], name)
	}
	if c.all.places[name] != nil {
		return c.same(name)
	}
	r, is := c.held[name]
	if !is {
		r = c.regs.take()
		c.part.get(r, c.bases[text(e.(*ast.IndexExpr).X)])
		c.held[name] = r
	}
	c.left[name]--
	if c.regs.owned[r] = c.left[name] == 0; c.regs.owned[r] {
		delete(c.held, name)
	}
	return r
}
