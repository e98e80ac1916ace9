"""Writes the tables and folders beside it that Python programs make, with numpy, pandas, openpyxl
and XlsxWriter (whose workbooks have fixed dates here): python tables.py

What they hold is 1.5 2 / 3 4.25, or stands in formats_test.go.
"""
import bz2
import csv
import gzip
import os

import numpy as np
import openpyxl
import pandas as pd
from scipy import io, sparse

x = np.array([[1.5, 2], [3, 4.25]])
named = pd.DataFrame(x, index=["TP53", "EGFR"], columns=["a", "b"])
named.to_csv("pandas.csv")
named.to_csv("pandas.tsv.gz", sep="\t", index_label="gene", compression={"method": "gzip", "mtime": 0})
named.to_csv("pandas.csv.bz2", index_label="gene")
pd.DataFrame(x).to_csv("pandas-numbered.csv")
pd.DataFrame(x).to_csv("pandas-noindex.csv", index=False)
named.rename_axis("Hugo_Symbol").reset_index().assign(Entrez_Gene_Id=[7157, 1956])[["Hugo_Symbol", "Entrez_Gene_Id", "a", "b"]].to_csv("cbioportal.txt", sep="\t", index=False)
named.set_axis([7157, 1956]).rename_axis("Entrez_Gene_Id").to_csv("entrez.csv")
named.set_axis([101, 205], axis=1).rename_axis("gene").to_csv("numbered-samples.csv")
named.mask(named > 4).to_csv("pandas-missing.csv")
np.savetxt("numpy.txt", x)
np.savetxt("numpy.csv", x, delimiter=",", header="a,b", fmt="%g")

book = openpyxl.Workbook()
sheet = book.active
for row in [["Gene", "Tumor, primary", 'a "b"'], ["TP53", 1.5, 2], ["EGFR", 3, 4.25]]:
    sheet.append(row)
book.save("sheet.xlsx")

def workbooks():
    """What workbooks have beside numbers: sheets, dates, truths, errors, empty rows and cells, further headers."""
    from datetime import date, datetime

    import xlsxwriter

    book = openpyxl.Workbook()
    book.active.title = "notes"
    book.active.append(["what this is"])
    sheet = book.create_sheet("a & b")
    for row in [["made by", "us"], [], ["gene", "s1", "s2", "s3"], ["unit", "mg", "g", "mg"], [date(2024, 3, 1), 0.1, True, "<0.5"],
                ["EGFR", "#N/A", False, 2], [], ["TP53", 1e-7, None, "ND"]]:
        sheet.append(row)
    book.save("openpyxl.xlsx")
    book = xlsxwriter.Workbook("xlsxwriter.xlsx", {"constant_memory": True})  # texts in their cells
    book.set_properties({"created": datetime(2024, 1, 1)})
    sheet = book.add_worksheet()
    for i, row in enumerate([["", "a", "<b> & \"c\""], ["TP53", 1.5, "2,25"], ["EGFR", 3, 4.25]]):
        for j, cell in enumerate(row):
            sheet.write(i, j, cell)
    sheet.write_formula(3, 1, "=B2+B3", None, 4.5)
    sheet.write(3, 0, "sum")
    sheet.write(3, 2, date(2024, 1, 31), book.add_format({"num_format": "d mmm yyyy"}))
    book.close()


workbooks()
rows = list(openpyxl.load_workbook("sheet.xlsx").active.values)
with open("excel.csv", "w", newline="", encoding="utf-8-sig") as f:  # Excel's "CSV UTF-8"
    csv.writer(f, dialect="excel").writerows(rows)
with open("excel-sep.csv", "w", newline="") as f:
    f.write("sep=;\r\n")
    csv.writer(f, dialect="excel", delimiter=";").writerows(rows)

with open("featurecounts.txt", "w") as f:
    f.write('# Program:featureCounts v2.0.6; Command:"featureCounts" "-a" "a.gtf" "-o" "c.txt" "a.bam" "b.bam"\n')
    f.write("Geneid\tChr\tStart\tEnd\tStrand\tLength\ta.bam\tb.bam\n")
    f.write("ENSG1\tchr1;chr1\t10;30\t20;40\t+;+\t22\t5\t0\nENSG2\t2\t7\t9\t-\t3\t0\t7\n")

for folder, ending, features in [("tenx", ".gz", "features.tsv"), ("tenx2", "", "genes.tsv")]:
    os.makedirs(folder, exist_ok=True)
    def write(name, text):
        data = text if isinstance(text, bytes) else text.encode()
        with open(f"{folder}/{name}{ending}", "wb") as f:
            f.write(gzip.compress(data, mtime=0) if ending else data)
    io.mmwrite("m.mtx", sparse.coo_matrix(np.array([[0, 3], [5, 0], [0, 1]])), field="integer")
    write("matrix.mtx", open("m.mtx", "rb").read())
    os.remove("m.mtx")
    kinds = ["Gene Expression", "Gene Expression", "Antibody Capture"]
    third = ["\t" + k for k in kinds] if features == "features.tsv" else ["", "", ""]
    write(features, "".join(f"ENSG{i}\tG{i}{third[i]}\n" for i in range(3)))
    write("barcodes.tsv", "AAA-1\nCCC-1\n")
