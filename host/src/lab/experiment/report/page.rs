//! One page with everything, which needs no other file and no script.

use super::table::{Item, Table};
use super::view::{Experiment, View};
use super::{pictures, tables, verdicts};

/// Narrow screens scroll wide tables on their own; the page itself never moves sideways.
const STYLE: &str = "
:root{color-scheme:light dark;--ground:#fff;--ink:#20242a;--faint:#626a75;--line:#dee2e7;--shade:#f5f6f8}
@media (prefers-color-scheme:dark){:root{--ground:#11151c;--ink:#e7ebf0;--faint:#9aa3af;--line:#303742;--shade:#1a202a}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:84rem;background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.6rem}h2{font-size:1.35rem;margin-top:2.5rem}h3{font-size:1.15rem;margin-top:2rem}h4{font-size:1rem;margin:1.5rem 0 .25rem}
p,dd{max-width:52rem}dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem}dt{color:var(--faint)}dd{margin:0;overflow-wrap:anywhere}
.note{color:var(--faint);font-size:.9rem;margin:.25rem 0 .5rem}
.maps{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,26rem),1fr));gap:1rem}
figure{margin:0;overflow-x:auto}
figure svg{display:block;width:100%;min-width:26rem;height:auto}
.scroll{overflow-x:auto;border:1px solid var(--line);border-radius:.4rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem;width:100%}
th,td{padding:.3rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{background:var(--shade);font-weight:600;white-space:normal;vertical-align:bottom;min-width:3.5rem}
th.words,td.words{text-align:left}
td.long{white-space:normal;min-width:16rem}
.lead{font-size:1.15rem;font-weight:600}
figure.made{text-align:center;font-size:.9rem}
.made-by-networks{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,14rem),1fr));gap:1rem}
figure.made img{width:100%;image-rendering:pixelated;border:1px solid var(--line)}
tr:last-child td{border-bottom:0}td[title]{cursor:help}
td[title]:focus{outline:2px solid var(--faint);outline-offset:-2px}
td[title]:focus::after{content:attr(title);position:fixed;z-index:1;left:.75rem;right:.75rem;bottom:.75rem;padding:.6rem .8rem;
white-space:normal;text-align:left;background:var(--ground);border:1px solid var(--faint);border-radius:.4rem}
nav a{color:inherit;margin-right:1rem}
@media (max-width:30rem){body{padding:.75rem}dl{grid-template-columns:1fr}dd{margin-bottom:.5rem}figure svg{min-width:0}}
";

pub(super) fn page(experiments: &[Experiment]) -> String {
    let title = match experiments {
        [one] => one.spec.title.clone(),
        _ => "Experiments".into(),
    };
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>{0}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{0}</h1>\n",
        escape(&title)
    );
    if experiments.len() > 1 {
        let link = |own: &Experiment| {
            format!("<a href=\"#{}\">{}</a>\n", own.name, escape(&own.spec.title))
        };
        html += &format!("<nav>\n{}</nav>\n", experiments.iter().map(link).collect::<String>());
    }
    if let Some(verdicts::Headline { sentence, table: own }) = verdicts::headline(experiments) {
        html += &format!("<p class=\"lead\">{}</p>\n{}", escape(&sentence), table(&own));
    }
    html += "<p class=\"note\">Point at a cell of a map or table for its seeds, time, memory and the published figure. \
             Losses that jump from batch to batch, or where weights are pruned, are running means over a tenth of the training.</p>\n";
    for experiment in experiments {
        html += &format!("<section id=\"{}\">\n", experiment.name);
        if experiments.len() > 1 {
            html += &format!("<h2>{}</h2>\n", escape(&experiment.spec.title));
        }
        let fact =
            |(name, fact): (&str, String)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(&fact));
        let facts: String = experiment.facts().into_iter().map(fact).collect();
        html += &format!("<dl>\n{facts}</dl>\n");
        html += &experiment.views.iter().map(part).collect::<String>();
        html += "</section>\n";
    }
    html + "</body>\n</html>\n"
}

fn part(view: &View) -> String {
    let figures = |pictures: Vec<(String, String)>| {
        let one = |(_, svg): (String, String)| format!("<figure>\n{svg}</figure>\n");
        pictures.into_iter().map(one).collect::<String>()
    };
    let settings = escape(&tables::settings(view));
    let mut html = format!("<h3>{}</h3>\n<p>{settings}.</p>\n", escape(&view.part.title));
    for pictures in [pictures::heat_maps(view), pictures::curves(view)] {
        if !pictures.is_empty() {
            html += &format!("<div class=\"maps\">\n{}</div>\n", figures(pictures));
        }
    }
    let made = pictures::reconstructions(view);
    let made: String = made.iter().map(|(caption, png)| reconstruction(caption, png)).collect();
    if !made.is_empty() {
        html += "<h4>Pictures</h4>\n<p class=\"note\">Left the picture, right what the network makes of it; the first seed.</p>\n";
        html += &format!("<div class=\"made-by-networks\">\n{made}</div>\n");
    }
    html + &tables::tables(view).iter().map(table).collect::<String>()
}

fn reconstruction(caption: &str, png: &str) -> String {
    let digits = png.as_bytes().chunks(2).map(|byte| format!("%{}", String::from_utf8_lossy(byte)));
    let caption = escape(caption);
    format!(
        "<figure class=\"made\"><img alt=\"{caption}\" src=\"data:image/png,{}\"/><figcaption>{caption}</figcaption></figure>\n",
        digits.collect::<String>()
    )
}

fn table(table: &Table) -> String {
    let sides = table.words();
    let side = |at: usize| if sides[at] { " class=\"words\"" } else { "" };
    let head = table.head.iter().enumerate();
    let head: String =
        head.map(|(at, head)| format!("<th{}>{}</th>", side(at), escape(head))).collect();
    // What a pointer shows a finger shows too, at the foot of the screen: a cell that is tapped has
    // the focus.
    let item = |(at, item): (usize, &Item)| {
        let class = match (sides[at], item.text.len() > 30) {
            (true, true) => " class=\"words long\"",
            _ => side(at),
        };
        let title = if item.hover.is_empty() {
            String::new()
        } else {
            format!(" tabindex=\"-1\" title=\"{}\"", escape(&item.hover))
        };
        format!("<td{class}{title}>{}</td>", escape(&item.text))
    };
    let row = |row: &Vec<Item>| {
        format!("<tr>{}</tr>\n", row.iter().enumerate().map(item).collect::<String>())
    };
    let note = if table.note.is_empty() {
        String::new()
    } else {
        format!("<p class=\"note\">{}</p>\n", escape(&table.note))
    };
    format!(
        "<h4>{}</h4>\n{note}<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        escape(&table.title),
        table.rows.iter().map(row).collect::<String>()
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
