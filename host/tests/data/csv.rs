//! CSV as it comes: dialects, and errors with their places.

use crate::formats::{assert_error, floats};
use tamis_host::data::{Source, csv};

#[test]
fn csv_dialects() {
    let read = |text: &str| csv::read(Source::bytes(text.as_bytes())).unwrap();
    let rows = floats(2, 2, vec![1.5, 2.0, -3.0, 400.0]);
    for text in [
        "1.5,2\n-3,4e2\n",
        "1.5;2\n-3;4e2",
        "1,5;2\r\n-3,0;4e2\r\n",
        "1.5\t2\n-3\t4e2\n",
        "1.5 2\n-3 4e2\n",
        "\"1.5\",\"2\"\n\"-3\",\"4e2\"\n",
        " 1.5 , 2 \n\n\n -3 , 4e2 \n   \n",
        "\u{feff}1.5,2\n-3,4e2\n",
        "1.5,2\r-3,4e2\r",
    ] {
        assert_eq!(read(text).matrix, rows, "{text:?}");
        assert_eq!(read(text).names, None, "{text:?}");
    }
    for text in ["a,b\n1,2\n", "label,0\n1,2\n", "\"a\",\"b\"\r\n1,2\r\n", "\u{feff}a;b\n1;2"] {
        let table = read(text);
        assert_eq!(table.matrix, floats(1, 2, vec![1.0, 2.0]), "{text:?}");
        assert_eq!(table.names.unwrap().len(), 2, "{text:?}");
    }
    assert_eq!(read("# a,b\n1,2\n").names.unwrap(), ["a", "b"]);
    assert_eq!(read("a name\n7\n").names.unwrap(), ["a name"]);
    assert_eq!(read("\"two\nlines\",b\n1,2\n").names.unwrap(), ["two\nlines", "b"]);
}

#[test]
fn csv_errors_name_the_place() {
    let read = |text: &str| csv::read(Source::bytes(text.as_bytes()));
    for (text, parts) in [
        ("", &["no rows of numbers"][..]),
        ("\n\n", &["no rows of numbers"]),
        ("a,b\n", &["no rows of numbers"]),
        ("1,2\n3\n", &["different lengths", "expected: 2 cells", "got: 1 cells in line 2"]),
        ("1,2\r\n\r\n3,4,5\r\n", &["different lengths", "got: 3 cells in line 3"]),
        ("a,b\n1\n", &["different lengths", "in line 2"]),
        ("1,2\n3,four\n", &["not a number", "\"four\" in line 2, column 2"]),
        ("a,b\n1,2\n\n3,x\n", &["not a number", "\"x\" in line 4, column 2 (b)"]),
        ("1,2\n,4\n", &["a cell is empty", "line 2, column 1"]),
        ("1,2,\n", &["a cell is empty", "line 1, column 3"]),
        ("1,NA\n2,3\n", &["not a number", "\"NA\" in line 1, column 2"]),
        ("1.5,abc\n2,3\n", &["not a number", "\"abc\" in line 1, column 2"]),
        ("1,nan\n2,3\n", &["finite", "nan in line 1, column 2"]),
        ("1,2\n3,-inf\n", &["finite", "-inf in line 2, column 2"]),
        ("1,2\n3,1e39\n", &["finite", "1e39 in line 2, column 2"]),
        ("\"a\nb\",c\n1,2\n3,d\n", &["\"d\" in line 4, column 2 (c)"]),
        ("1,2\n\0", &["not a text file"]),
        ("a,b,a\n1,2,3\n", &["same name", "\"a\" in line 1, column 1 and column 3", "rename"]),
        ("# a;\"a\"\n1;2\n", &["same name", "\"a\" in line 1, column 1 and column 2"]),
        (
            "1,2\n3,\"4\n5,6\n",
            &["quote is not closed", "line 2, column 2", "end of the file", "close the quote"],
        ),
        ("a,\"b\n1,2\n", &["quote is not closed", "line 1, column 2"]),
        ("1,2\n3,\"", &["quote is not closed", "line 2, column 2"]),
        ("1,2\n3,\"4\"\"", &["quote is not closed", "line 2, column 2"]),
        ("1,2\n3,\"4\n5,\"6\"\n", &["not a number", "line 2", "quote that is not closed"]),
        ("1,2\n3,\"4\n5\",6\n", &["different lengths", "line 2", "quote that is not closed"]),
    ] {
        assert_error(read(text), parts);
    }
    let latin: [(&[u8], &str); 3] = [
        (b"gr\xf6\xdfe,b\n1,2\n", "\"gr\\xf6\\xdfe\" in line 1, column 1"),
        (b"a,b\n1,2\n3,\xa0\n", "\"\\xa0\" in line 3, column 2"),
        (b"a,\xff", "\"\\xff\" in line 1, column 2"),
    ];
    for (text, place) in latin {
        assert_error(
            csv::read(Source::bytes(text)),
            &["not in UTF-8", place, "save the file as UTF-8"],
        );
    }
    for text in ["a,,\n1,2,3\n", "x,y\n1,2\n\"3\",\"4\"", "\"a\",\"b \"\"c\"\"\"\n1,2"] {
        assert!(read(text).is_ok(), "{text}");
    }
    let open_quote = format!("1,2\n3,\"{}", "4,5\n".repeat(20_000));
    assert_error(read(&open_quote), &["too long", "line 2, column 2", "quote"]);
}

#[test]
fn csv_headers_of_numbers_comments_and_separators() {
    let read = |text: &str| csv::read(Source::bytes(text.as_bytes())).unwrap();
    for (text, names, rows) in [
        ("0,1,2\n5,6,7\n", Some(vec!["0", "1", "2"]), 1),
        ("1,2,3\n5,6,9\n", Some(vec!["1", "2", "3"]), 1),
        ("0,1,2\n3,4,5\n", None, 2),
        ("1,2,3\n4,5,6\n", None, 2),
        ("0,1\n5,6\n", None, 2),
        // Of two columns above what is no whole number, and behind the numbers of the rows.
        ("0,1\n5.5,6\n", Some(vec!["0", "1"]), 1),
        (",0,1,2\n0,5,6,7\n1,5,6,7\n", Some(vec!["", "0", "1", "2"]), 2),
        ("sep=;\na;b\n1;2\n", Some(vec!["a", "b"]), 1),
        ("\"sep=|\"\r\n1|2\r\n3|4\r\n", None, 2),
        ("# made by hand\na,b\n# the first\n1,2\n", Some(vec!["a", "b"]), 1),
        ("#a,b\n1,2\n", Some(vec!["a", "b"]), 1),
        ("# 2 rows\n1,2\n3,4\n", None, 2),
    ] {
        let table = read(text);
        let names = names.map(|names| names.into_iter().map(String::from).collect::<Vec<_>>());
        assert_eq!((table.names, table.matrix.rows), (names, rows), "{text:?}");
    }
    let error = csv::read(Source::bytes(b"sep=;\na;b\n1;x\n"));
    assert_error(error, &["\"x\" in line 3, column 2 (b)"]);
}
