//! Which rows a transaction has changed: triggers of the writer's connection note their keys. They are in the temporary database, so
//! neither the ledger nor a copy of it has them, and a savepoint or a transaction that is undone takes its notes along.

use sqlx::sqlite::{SqliteArguments, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Column as _, Row as _, TypeInfo as _, ValueRef as _};

use cloakroom_storage::log::{Columns, RowChange, Value};

/// The tables of a ledger. The library of the migrations keeps its own.
const TABLES: &str = "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' \
                      AND name <> '_sqlx_migrations' ORDER BY name";

/// The changed rows of a connection, since they were last taken.
#[derive(Debug)]
pub struct RowChanges {
    tables: Vec<Table>,
}

#[derive(Debug)]
struct Table {
    name: String,
    /// The columns of its primary key.
    key: Vec<String>,
    columns: Vec<String>,
}

impl RowChanges {
    /// Begins to note the changes of all tables that the database has now.
    pub async fn watch(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        // A temporary file would need a folder that can be written.
        execute(connection, "PRAGMA temp_store = MEMORY".into()).await?;
        // Otherwise a row that INSERT OR REPLACE displaces runs no trigger.
        execute(connection, "PRAGMA recursive_triggers = ON".into()).await?;
        let tables = tables(connection).await?;
        for table in &tables {
            for statement in table.watching() {
                execute(connection, statement).await?;
            }
        }
        Ok(Self { tables })
    }

    /// Takes out all changes since the last call. It must be called in the transaction that made them, and before its end.
    pub async fn take(&self, connection: &mut SqliteConnection) -> Result<Vec<RowChange>, sqlx::Error> {
        let mut changes = Vec::new();
        for table in &self.tables {
            let before = changes.len();
            for row in all(connection, table.present()).await? {
                let row = columns(&row)?;
                let key = table.key.iter().filter_map(|column| row.get_key_value(column));
                let key = key.map(|(column, value)| (column.clone(), value.clone())).collect();
                changes.push(RowChange { table: table.name.clone(), key, row: Some(row) });
            }
            for row in all(connection, table.gone()).await? {
                changes.push(RowChange { table: table.name.clone(), key: columns(&row)?, row: None });
            }
            if changes.len() > before {
                execute(connection, format!("DELETE FROM temp.{}", table.notes())).await?;
            }
        }
        Ok(changes)
    }
}

/// Makes these changes to a database whose tables have the form that they are from.
pub async fn apply(connection: &mut SqliteConnection, changes: &[RowChange]) -> Result<(), sqlx::Error> {
    let tables = tables(connection).await?;
    for change in changes {
        let unknown = |what: &str| sqlx::Error::Protocol(format!("the log has an unknown {what}"));
        let table = tables.iter().find(|table| table.name == change.table).ok_or_else(|| unknown("table"))?;
        let values = change.row.as_ref().unwrap_or(&change.key);
        if !values.keys().all(|column| table.columns.contains(column))
            || !change.key.keys().eq(table.sorted_key())
        {
            return Err(unknown("column"));
        }
        let statement = if change.row.is_some() { table.replace(values) } else { table.delete(values) };
        let mut query = sqlx::query(AssertSqlSafe(statement));
        for value in values.values() {
            query = bind(query, value);
        }
        query.execute(&mut *connection).await?;
    }
    Ok(())
}

impl Table {
    /// The name of the table with the keys of changed rows.
    fn notes(&self) -> String {
        quoted(&format!("changed_{}", self.name))
    }

    fn watching(&self) -> impl Iterator<Item = String> {
        let (name, notes) = (quoted(&self.name), self.notes());
        let keys_of = |row: &str| list(&self.key, ", ", |column| format!("{row}.{column}"));
        let trigger = |event: &str, rows: &[&str]| {
            let trigger = quoted(&format!("{event}_{}", self.name));
            let keys: Vec<String> = rows.iter().map(|row| format!("({})", keys_of(row))).collect();
            let keys = keys.join(", ");
            format!(
                "CREATE TEMP TRIGGER {trigger} AFTER {event} ON main.{name} BEGIN INSERT INTO {notes} VALUES {keys}; END"
            )
        };
        let key = list(&self.key, ", ", str::to_owned);
        [
            format!("CREATE TEMP TABLE {notes} ({key})"),
            trigger("INSERT", &["NEW"]),
            trigger("UPDATE", &["OLD", "NEW"]),
            trigger("DELETE", &["OLD"]),
        ]
        .into_iter()
    }

    /// The changed rows that are there. A cross join reads the notes first, and looks each of them up.
    fn present(&self) -> String {
        let (name, notes) = (quoted(&self.name), self.notes());
        format!(
            "SELECT t.* FROM (SELECT DISTINCT * FROM temp.{notes}) c CROSS JOIN main.{name} t ON {}",
            self.is_same()
        )
    }

    /// The keys of the changed rows that are gone.
    fn gone(&self) -> String {
        let (name, notes) = (quoted(&self.name), self.notes());
        format!(
            "SELECT DISTINCT c.* FROM temp.{notes} c WHERE NOT EXISTS (SELECT 1 FROM main.{name} t WHERE {})",
            self.is_same()
        )
    }

    fn is_same(&self) -> String {
        list(&self.key, " AND ", |column| format!("t.{column} = c.{column}"))
    }

    fn replace(&self, values: &Columns) -> String {
        let columns = list(values.keys(), ", ", str::to_owned);
        let values: Vec<&str> = values.values().map(placeholder).collect();
        format!(
            "INSERT OR REPLACE INTO main.{} ({columns}) VALUES ({})",
            quoted(&self.name),
            values.join(", ")
        )
    }

    fn delete(&self, key: &Columns) -> String {
        let conditions: Vec<String> = key
            .iter()
            .map(|(column, value)| format!("{} = {}", quoted(column), placeholder(value)))
            .collect();
        format!("DELETE FROM main.{} WHERE {}", quoted(&self.name), conditions.join(" AND "))
    }

    fn sorted_key(&self) -> impl Iterator<Item = &String> {
        let mut key: Vec<_> = self.key.iter().collect();
        key.sort();
        key.into_iter()
    }
}

async fn tables(connection: &mut SqliteConnection) -> Result<Vec<Table>, sqlx::Error> {
    let names: Vec<String> = sqlx::query_scalar(TABLES).fetch_all(&mut *connection).await?;
    let mut tables = Vec::with_capacity(names.len());
    for name in names {
        let (mut key, mut columns) = (Vec::new(), Vec::new());
        for row in all(connection, format!("PRAGMA main.table_info({})", quoted(&name))).await? {
            let column: String = row.try_get("name")?;
            // Its place in the primary key, from 1; 0 if it is none of it.
            if let place @ 1.. = row.try_get::<i64, _>("pk")? {
                key.push((place, column.clone()));
            }
            columns.push(column);
        }
        key.sort();
        let key = key.into_iter().map(|(_, column)| column).collect();
        tables.push(Table { name, key, columns });
    }
    Ok(tables)
}

/// All values of a row.
fn columns(row: &SqliteRow) -> Result<Columns, sqlx::Error> {
    row.columns().iter().map(|column| Ok((column.name().to_owned(), value(row, column.ordinal())?))).collect()
}

fn value(row: &SqliteRow, index: usize) -> Result<Value, sqlx::Error> {
    let raw = row.try_get_raw(index)?;
    if raw.is_null() {
        return Ok(Value::Null);
    }
    Ok(match raw.type_info().name() {
        "INTEGER" => Value::Integer(row.try_get_unchecked(index)?),
        "BLOB" => Value::Blob { blob: row.try_get_unchecked(index)? },
        "TEXT" => match String::from_utf8(row.try_get_unchecked(index)?) {
            Ok(text) => Value::Text(text),
            Err(damaged) => Value::DamagedText { text: damaged.into_bytes() },
        },
        other => return Err(sqlx::Error::Protocol(format!("the log takes no values of type {other}"))),
    })
}

fn placeholder(value: &Value) -> &'static str {
    if matches!(value, Value::DamagedText { .. }) { "CAST(? AS TEXT)" } else { "?" }
}

type Query<'q> = sqlx::query::Query<'q, sqlx::Sqlite, SqliteArguments>;

fn bind<'q>(query: Query<'q>, value: &'q Value) -> Query<'q> {
    match value {
        Value::Null => query.bind(None::<&str>),
        Value::Integer(number) => query.bind(number),
        Value::Text(text) => query.bind(text.as_str()),
        Value::Blob { blob: bytes } | Value::DamagedText { text: bytes } => query.bind(bytes.as_slice()),
    }
}

fn list<'a>(
    columns: impl IntoIterator<Item = &'a String>,
    separator: &str,
    item: impl Fn(&str) -> String,
) -> String {
    columns.into_iter().map(|column| item(&quoted(column))).collect::<Vec<_>>().join(separator)
}

/// A name as SQL writes it.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

async fn all(connection: &mut SqliteConnection, statement: String) -> Result<Vec<SqliteRow>, sqlx::Error> {
    sqlx::query(AssertSqlSafe(statement)).fetch_all(connection).await
}

async fn execute(connection: &mut SqliteConnection, statement: String) -> Result<(), sqlx::Error> {
    sqlx::query(AssertSqlSafe(statement)).execute(connection).await.map(drop)
}

#[cfg(test)]
mod tests;
