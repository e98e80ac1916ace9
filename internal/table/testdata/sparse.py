"""Writes sparse-*.npz beside it, with scipy 1.17.1 and numpy 2.4.6: python sparse.py

Every one holds the matrix 0 1.5 0 0 / 2 0 0.25 0, in each of SciPy's sparse formats, as
save_npz writes them; of coo one entry is there in two parts.
"""
import numpy as np
from scipy import sparse

x = np.array([[0, 1.5, 0, 0], [2, 0, 0.25, 0]])
for kind in "csr csc coo bsr dia".split():
    sparse.save_npz(f"sparse-{kind}.npz", sparse.bsr_matrix(x, blocksize=(1, 2)) if kind == "bsr" else sparse.csr_matrix(x).asformat(kind))
sparse.save_npz("sparse-twice.npz", sparse.coo_matrix(([1.0, 1.5, 1.0, 0.25], ([1, 0, 1, 1], [0, 1, 0, 2])), shape=(2, 4)))
sparse.save_npz("sparse-array.npz", sparse.csr_array(x.astype(np.float32)), compressed=False)
sparse.save_npz("sparse-int.npz", sparse.csc_matrix(x.astype(np.int16)))
sparse.save_npz("sparse-bsr22.npz", sparse.bsr_matrix(np.kron([[0, 1], [2, 0]], [[1, 2], [3, 4]]).astype(float), blocksize=(2, 2)))
sparse.save_npz("sparse-dia2.npz", sparse.dia_matrix((np.arange(1.0, 9).reshape(2, 4), [-1, 2]), shape=(3, 4)))
