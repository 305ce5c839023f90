//! One page with everything, which needs no other file and no script.

use super::table::{Item, Table};
use super::view::{Experiment, View};
use super::{pictures, tables, verdicts};
use crate::lab::plot::escape;

/// Narrow screens scroll wide tables on their own; the page itself never moves sideways.
const STYLE: &str = include_str!("page.css");

pub(super) fn page(experiments: &[Experiment]) -> String {
    let title = match experiments {
        [one] => one.spec.title.clone(),
        _ => "Experiments".into(),
    };
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" \
         content=\"width=device-width,initial-scale=1\">\n<title>{0}</title>\n<style>{STYLE}</style>\n\
         </head>\n<body>\n<h1>{0}</h1>\n",
        escape(&title)
    );
    if experiments.len() > 1 {
        let link = |own: &Experiment| {
            format!("<a href=\"#{}\">{}</a>\n", own.name, escape(&own.spec.title))
        };
        html += &format!("<nav>\n{}</nav>\n", experiments.iter().map(link).collect::<String>());
    }
    for (sentence, own) in verdicts::headlines(experiments) {
        html += &format!("<p class=\"lead\">{}</p>\n{}", escape(&sentence), table(&own));
    }
    html += "<p class=\"note\">Point at a cell of a map or table for its seeds, time, memory and \
        the published figure. \
             Losses that jump from batch to batch, or where weights are pruned, are running means \
             over a tenth of the training.</p>\n";
    for experiment in experiments {
        html += &format!("<section id=\"{}\">\n", experiment.name);
        if experiments.len() > 1 {
            html += &format!("<h2>{}</h2>\n", escape(&experiment.spec.title));
        }
        let fact =
            |(name, fact): (&str, String)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(&fact));
        let facts: String = experiment.facts().into_iter().map(fact).collect();
        html += &format!("<dl>\n{facts}</dl>\n");
        if !experiment.spec.remarks.is_empty() {
            let remark = |text: &String| format!("<li>{}</li>\n", escape(text));
            let remarks: String = experiment.spec.remarks.iter().map(remark).collect();
            html += &format!("<ul>\n{remarks}</ul>\n");
        }
        html += &experiment.views.iter().map(part).collect::<String>();
        html += "</section>\n";
    }
    html + "</body>\n</html>\n"
}

fn part(view: &View) -> String {
    let settings = escape(&tables::settings(view));
    let mut html = format!("<h3>{}</h3>\n<p>{settings}.</p>\n", escape(&view.part.title));
    for pictures in [pictures::heat_maps(view), pictures::curves(view)] {
        let figures = pictures.iter().map(|(_, svg)| format!("<figure>\n{svg}</figure>\n"));
        if !pictures.is_empty() {
            html += &format!("<div class=\"maps\">\n{}</div>\n", figures.collect::<String>());
        }
    }
    let made = pictures::reconstructions(view);
    let made = made.iter().map(|(caption, png)| {
        let caption = escape(caption);
        let bytes = png.as_bytes().chunks(2).map(String::from_utf8_lossy);
        let png: String = bytes.map(|byte| format!("%{byte}")).collect();
        format!(
            "<figure class=\"made\"><img alt=\"{caption}\" src=\"data:image/png,{png}\"/>\
             <figcaption>{caption}</figcaption></figure>\n"
        )
    });
    let made: String = made.collect();
    if !made.is_empty() {
        html += "<h4>Pictures</h4>\n<p class=\"note\">Left the picture, right what the network \
                 makes of it; the first seed.</p>\n";
        html += &format!("<div class=\"made-by-networks\">\n{made}</div>\n");
    }
    html + &tables::tables(view).iter().map(table).collect::<String>()
}

fn optional(text: &str, html: impl Fn(String) -> String) -> String {
    if text.is_empty() { String::new() } else { html(escape(text)) }
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
        let title = optional(&item.hover, |text| format!(" tabindex=\"-1\" title=\"{text}\""));
        format!("<td{class}{title}>{}</td>", escape(&item.text))
    };
    let row = |row: &Vec<Item>| {
        format!("<tr>{}</tr>\n", row.iter().enumerate().map(item).collect::<String>())
    };
    let note = optional(&table.note, |text| format!("<p class=\"note\">{text}</p>\n"));
    let (title, rows) = (escape(&table.title), table.rows.iter().map(row).collect::<String>());
    format!(
        "<h4>{title}</h4>\n{note}<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n"
    )
}
