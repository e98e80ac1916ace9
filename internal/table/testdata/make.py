"""Writes the files beside it, with numpy 2.4.6 and scipy 1.17.1: python make.py

Every one holds the matrix 0 1.5 0 / 2 0 0.25, or what is left of it in its type.
"""
import numpy as np
from scipy import io, sparse

x = np.array([[0, 1.5, 0], [2, 0, 0.25]])
for kind in "<f8 >f8 <f4 >f4 <f2 <i8 >i4 <i2 |i1 <u8 >u4 <u2 |u1 |b1".split():
    np.save(kind.replace("<", "le-").replace(">", "be-").replace("|", "") + ".npy", x.astype(kind))
np.save("fortran.npy", np.asfortranarray(x))
np.lib.format.write_array(open("version2.npy", "wb"), x, version=(2, 0))
np.save("cube.npy", np.zeros((2, 2, 2)))
np.save("complex.npy", x + 1j)
np.savez("one.npz", values=x)
np.savez_compressed("named.npz", x=x, other=x.T, features=np.array(["g1", "gü"]), samples=np.array([b"a", b"bc", b"d"]))
np.savez("several.npz", a=x, b=x)
io.mmwrite("coordinate.mtx", sparse.coo_matrix(x), comment="a comment")
io.mmwrite("array.mtx", x)
s = np.array([[1.0, 2, 0], [2, 0, 3], [0, 3, 5]])
io.mmwrite("symmetric.mtx", sparse.coo_matrix(s))
io.mmwrite("pattern.mtx", sparse.coo_matrix(x), field="pattern")
